"""Makes the test keys and tokens of this folder with PyJWT: pip install 'pyjwt[crypto]', then python make.py.

The keys are for tests only. Nothing real may ever be signed with them.
"""

import base64
import hashlib
import hmac
import json

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

NOW = 1_800_000_000
SECRET = "test-only-secret-of-the-token-vectors-0123"
CLAIMS = {
    "email": "alice@example.com",
    "connection_url": "wss://relay.example.com/mcp",
    "user_id": "83898119-db4f-4848-9d27-ea328b73a4df",
    "session_id": "s-1",
    "jti": "token-1",
    "iat": NOW - 60,
    "exp": NOW + 3600,
}


def b64(data):
    if isinstance(data, str):
        data = data.encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def hs256(header, claims, key=SECRET.encode()):
    """A token whose parts are taken as they are, however wrong."""
    header = header if isinstance(header, str) else json.dumps(header)
    claims = claims if isinstance(claims, str) else json.dumps(claims)
    signed = f"{b64(header)}.{b64(claims)}"
    return f"{signed}.{b64(hmac.new(key, signed.encode(), hashlib.sha256).digest())}"


def without(*names):
    return {name: value for name, value in CLAIMS.items() if name not in names}


def public_pem(key):
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def private_pem(key):
    return b"For tests only.\n" + key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def jwk(key, algorithm, kid):
    fields = json.loads(jwt.get_algorithm_by_name(algorithm).to_jwk(key.public_key()))
    fields.pop("key_ops", None)
    return {**fields, "kid": kid, "use": "sig", "alg": algorithm}


rsa_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
second_rsa_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
short_rsa_key = rsa.generate_private_key(public_exponent=65537, key_size=1024)
ec_key = ec.generate_private_key(ec.SECP256R1())
other_curve_key = ec.generate_private_key(ec.SECP384R1())
ed_key = ed25519.Ed25519PrivateKey.generate()

for name, key in [("rsa", rsa_key), ("ec", ec_key), ("ed25519", ed_key)]:
    open(f"{name}.pub.pem", "wb").write(public_pem(key))
    open(f"{name}.key.pem", "wb").write(private_pem(key))
for name, key in [("rsa-1024", short_rsa_key), ("ec-p384", other_curve_key)]:
    open(f"{name}.pub.pem", "wb").write(public_pem(key))
open("rsa-pkcs1.pub.pem", "wb").write(
    rsa_key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.PKCS1
    )
)
open("secret", "w").write(SECRET + "\n")

# Besides the usable keys: what a verifier has to pass over.
jwks = {
    "keys": [
        jwk(rsa_key, "RS256", "rsa-1"),
        jwk(second_rsa_key, "RS256", "rsa-2"),
        jwk(ec_key, "ES256", "ec-1"),
        jwk(ed_key, "EdDSA", "ed-1"),
        {**jwk(rsa_key, "RS256", "encryption"), "use": "enc"},
        {**jwk(rsa_key, "RS256", "pss"), "alg": "PS256"},
        {"kty": "oct", "k": b64(SECRET), "kid": "symmetric", "alg": "HS256"},
        jwk(other_curve_key, "ES384", "ec-p384"),
        jwk(short_rsa_key, "RS256", "short"),
        {"kty": "AKP", "alg": "ML-DSA-44", "pub": "AAAA", "kid": "of the future"},
    ]
}
json.dump(jwks, open("jwks.json", "w"), indent=1)

HEADER = {"alg": "HS256", "typ": "JWT"}
rsa_pem, ec_pem, ed_pem = map(public_pem, (rsa_key, ec_key, ed_key))
good_ec = jwt.encode(CLAIMS, ec_key, "ES256")
signed = good_ec.rsplit(".", 1)[0]
rs_signed = f"{b64(json.dumps({'alg': 'PS256'}))}.{b64(json.dumps(CLAIMS))}"
pss = rsa_key.sign(
    rs_signed.encode(), padding.PSS(padding.MGF1(SHA256()), 32), SHA256()
)
good = jwt.encode(CLAIMS, SECRET, "HS256")
head, body, tail = good.split(".")
claims_text = json.dumps(CLAIMS)

tokens = {
    # Good ones.
    "hs256": good,
    "rs256": jwt.encode(CLAIMS, rsa_key, "RS256"),
    "es256": good_ec,
    "eddsa": jwt.encode(CLAIMS, ed_key, "EdDSA"),
    "rs256 kid rsa-1": jwt.encode(CLAIMS, rsa_key, "RS256", {"kid": "rsa-1"}),
    "rs256 kid rsa-2": jwt.encode(CLAIMS, second_rsa_key, "RS256", {"kid": "rsa-2"}),
    "es256 kid ec-1": jwt.encode(CLAIMS, ec_key, "ES256", {"kid": "ec-1"}),
    "sub only": jwt.encode({**without("user_id"), "sub": "bob"}, SECRET, "HS256"),
    "user_id and sub": jwt.encode({**CLAIMS, "sub": "bob"}, SECRET, "HS256"),
    "least": jwt.encode({"user_id": "a", "exp": NOW + 1}, SECRET, "HS256"),
    "fraction of a second": hs256(HEADER, {"sub": "a", "exp": NOW + 1.5}),
    "null claims": hs256(HEADER, {**CLAIMS, "jti": None, "nbf": None}),
    "expired within leeway": jwt.encode({**CLAIMS, "exp": NOW - 4}, SECRET, "HS256"),
    "not before within leeway": jwt.encode({**CLAIMS, "nbf": NOW + 5}, SECRET, "HS256"),
    # Hostile or broken ones.
    "none": jwt.encode(CLAIMS, None, "none"),
    "none with signature": f"{b64(json.dumps({'alg': 'none'}))}.{body}.{tail}",
    "None": f"{b64(json.dumps({'alg': 'None'}))}.{body}.",
    "hs512": jwt.encode(CLAIMS, SECRET * 2, "HS512"),
    "hs256 lower case": hs256({"alg": "hs256"}, CLAIMS),
    "no alg": hs256({"typ": "JWT"}, CLAIMS),
    "alg twice": hs256('{"alg":"HS256","alg":"none"}', CLAIMS),
    "alg number": hs256({"alg": 256}, CLAIMS),
    "header a list": hs256('["HS256", null, false]', CLAIMS),
    "hs256 with rsa pem": hs256(HEADER, CLAIMS, rsa_pem),
    "hs256 with rsa pem, trimmed": hs256(HEADER, CLAIMS, rsa_pem.strip()),
    "hs256 with ec pem": hs256(HEADER, CLAIMS, ec_pem),
    "hs256 with ed25519 pem": hs256(HEADER, CLAIMS, ed_pem),
    "rs256 signed by hs256": hs256({"alg": "RS256"}, CLAIMS, rsa_pem),
    "ps256": f"{rs_signed}.{b64(pss)}",
    "es256 as der": f"{signed}.{b64(ec_key.sign(signed.encode(), ec.ECDSA(SHA256())))}",
    "es256 of zeros": f"{signed}.{b64(bytes(64))}",
    "es256 empty": f"{signed}.",
    "crit": hs256({**HEADER, "crit": ["b64"], "b64": False}, CLAIMS),
    "crit unknown": hs256({**HEADER, "crit": ["x"], "x": 1}, CLAIMS),
    "crit null": hs256({**HEADER, "crit": None}, CLAIMS),
    "other secret": hs256(HEADER, CLAIMS, b"another secret that is long enough!"),
    "claims changed": f"{head}.{b64(claims_text.replace('83898119', '83898118'))}.{tail}",
    "header changed": f"{b64(json.dumps({**HEADER, 'kid': 'x'}))}.{body}.{tail}",
    "signature cut": good[:-1],
    "signature padded": good + "=",
    "four parts": good + ".",
    "two parts": f"{head}.{body}",
    "encrypted": f"{head}..{body}.{tail}.{tail}",
    "expired": jwt.encode({**CLAIMS, "exp": NOW - 5}, SECRET, "HS256"),
    "expired long ago": jwt.encode({**CLAIMS, "exp": 0}, SECRET, "HS256"),
    "not yet valid": jwt.encode({**CLAIMS, "nbf": NOW + 6}, SECRET, "HS256"),
    "no exp": jwt.encode(without("exp"), SECRET, "HS256"),
    "exp null": hs256(HEADER, {**CLAIMS, "exp": None}),
    "exp string": hs256(HEADER, {**CLAIMS, "exp": str(NOW + 3600)}),
    "exp negative": hs256(HEADER, {**CLAIMS, "exp": -1}),
    "exp huge": hs256(HEADER, {**CLAIMS, "exp": 10**18}),
    "exp beyond floats": hs256(HEADER, claims_text.replace(str(NOW + 3600), "1e999")),
    "exp twice": hs256(HEADER, claims_text[:-1] + f', "exp": {NOW + 9999}}}'),
    "user_id twice": hs256(HEADER, claims_text[:-1] + ', "user_id": "mallory"}'),
    "user_id twice, escaped": hs256(HEADER, claims_text[:-1] + ', "user\\u005fid": "mallory"}'),
    "nbf string": hs256(HEADER, {**CLAIMS, "nbf": "0"}),
    "iat string": hs256(HEADER, {**CLAIMS, "iat": "0"}),
    "no user": jwt.encode(without("user_id"), SECRET, "HS256"),
    "user empty": jwt.encode({**CLAIMS, "user_id": ""}, SECRET, "HS256"),
    "user empty, sub set": hs256(HEADER, {**CLAIMS, "user_id": "", "sub": "bob"}),
    "user number": hs256(HEADER, {**CLAIMS, "user_id": 7}),
    "user with a line break": hs256(HEADER, {**CLAIMS, "user_id": "a\nb"}),
    "user with spaces around": hs256(HEADER, {**CLAIMS, "user_id": " a"}),
    "user of 257 letters": hs256(HEADER, {**CLAIMS, "user_id": "ä" * 257}),
    "jti with a line break": hs256(HEADER, {**CLAIMS, "jti": "a\nb"}),
    "jti number": hs256(HEADER, {**CLAIMS, "jti": 7}),
    "claims a list": hs256(HEADER, json.dumps(["bob", None, NOW + 60, None, None, None, None])),
    "claims not json": hs256(HEADER, "user_id"),
    "claims and more": hs256(HEADER, claims_text + "{}"),
    "claims not utf-8": f"{head}.{b64(bytes([255, 254]))}.{tail}",
    "claims nested": hs256(HEADER, claims_text[:-1] + ', "x": ' + "[" * 2000 + "]" * 2000 + "}"),
    "standard base64": f"{head}.{body}.{base64.b64encode(bytes([251] * 32)).decode()}",
    "kid unknown": jwt.encode(CLAIMS, rsa_key, "RS256", {"kid": "rsa-3"}),
    "kid of another key": jwt.encode(CLAIMS, rsa_key, "RS256", {"kid": "rsa-2"}),
    "kid of another algorithm": jwt.encode(CLAIMS, rsa_key, "RS256", {"kid": "ec-1"}),
    "kid of an encryption key": jwt.encode(CLAIMS, rsa_key, "RS256", {"kid": "encryption"}),
    "kid of a secret": hs256({**HEADER, "kid": "symmetric"}, CLAIMS),
    "kid of a short key": jwt.encode(CLAIMS, short_rsa_key, "RS256", {"kid": "short"}),
    "kid number": hs256({**HEADER, "kid": 1}, CLAIMS),
    "own key in header": jwt.encode(
        CLAIMS, second_rsa_key, "RS256", {"jwk": jwk(second_rsa_key, "RS256", "x")}
    ),
}
json.dump(tokens, open("tokens.json", "w"), indent=1, ensure_ascii=False)
