"""Collects the tool definitions of the packages in servers.json into tools.jsonl.

Installs each package into a folder of its own below the folder given as the only argument, starts it with dummy credentials,
asks for `tools/list` over stdio and never calls a tool. A package that does not answer in time or whose licence is not
permissive is skipped with a line on stderr.
"""

import json
import os
import queue
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
LONGEST_TEXT = 600
START_SECONDS = 40
INSTALL_SECONDS = 240
PERMISSIVE = re.compile(r"\b(MIT|Apache|BSD|ISC)", re.IGNORECASE)


def shorten(text):
    """Cuts a long text at the end of a sentence."""
    text = " ".join((text or "").split())
    if len(text) <= LONGEST_TEXT:
        return text
    head = text[:LONGEST_TEXT]
    end = head.rfind(". ")
    return head[: end + 1] if end > 0 else head.rsplit(" ", 1)[0]


def install_npm(package, folder, extra):
    folder.mkdir(parents=True, exist_ok=True)
    module = folder / "node_modules" / package
    if not module.exists():
        subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", str(folder), package],
            check=True, capture_output=True, timeout=INSTALL_SECONDS, env={**os.environ, **extra},
        )
    manifest = json.loads((module / "package.json").read_text())
    programs = manifest.get("bin") or {}
    script = programs if isinstance(programs, str) else next(iter(programs.values()))
    licence = manifest.get("license") or ""
    if isinstance(licence, dict):
        licence = licence.get("type", "")
    if licence.upper().startswith("SEE LICENSE") or not licence:
        licence = licence_of_text(module)
    return ["node", str(module / script)], manifest["version"], licence


def licence_of_text(folder):
    for path in sorted(folder.glob("LICEN[CS]E*")) + sorted(folder.glob("README*")):
        text = path.read_text(errors="replace")
        if "Permission is hereby granted, free of charge" in text or "MIT License" in text:
            return "MIT"
        if "Apache License" in text:
            return "Apache-2.0"
    return ""


def install_pypi(package, folder, program):
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, capture_output=True)
        subprocess.run(
            [str(python), "-m", "pip", "install", "--quiet", "--prefer-binary", package],
            check=True, capture_output=True, timeout=INSTALL_SECONDS,
        )
    probe = (
        "import importlib.metadata as m, json, sys\n"
        "d = m.distribution(sys.argv[1]); meta = d.metadata\n"
        "texts = [str(f.read_text())[:600] for f in (d.files or []) if 'LICEN' in f.name.upper() and f.locate().exists()]\n"
        "print(json.dumps([d.version, meta.get('License-Expression') or meta.get('License') or '',"
        " meta.get_all('Classifier') or [], texts, [e.name for e in d.entry_points if e.group == 'console_scripts']]))"
    )
    out = subprocess.run([str(python), "-c", probe, package], check=True, capture_output=True, text=True).stdout
    version, licence, classifiers, texts, programs = json.loads(out)
    if not licence or len(licence) > 60:
        licence = (licence + " ".join(c for c in classifiers if c.startswith("License")) + " ".join(texts))
        if "Permission is hereby granted, free of charge" in licence or "MIT" in licence:
            licence = "MIT"
        elif "Apache" in licence:
            licence = "Apache-2.0"
        elif "BSD" in licence:
            licence = "BSD"
        else:
            licence = ""
    chosen = program or (package if package in programs else programs[0])
    return [str(folder / "bin" / chosen)], version, licence


def ask_for_tools(command, environment, folder):
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder, text=True, start_new_session=True,
        stderr=open(folder / "stderr.txt", "w"), env={**os.environ, "HOME": str(folder), **environment},
    )
    lines = queue.Queue()
    threading.Thread(target=lambda: [lines.put(line) for line in process.stdout] + [lines.put(None)], daemon=True).start()
    deadline = time.monotonic() + START_SECONDS

    def send(message):
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        process.stdin.flush()

    def answer(wanted):
        while True:
            line = lines.get(timeout=max(0.1, deadline - time.monotonic()))
            if line is None:
                raise RuntimeError("ended")
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if isinstance(message, dict) and message.get("id") == wanted and "method" not in message:
                if "error" in message:
                    raise RuntimeError(str(message["error"])[:200])
                return message["result"]
            if isinstance(message, dict) and message.get("method") == "roots/list":
                send({"id": message["id"], "result": {"roots": []}})

    try:
        send({"id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "collect", "version": "1"}}})
        answer(1)
        send({"method": "notifications/initialized"})
        tools, cursor, number = [], None, 2
        while True:
            send({"id": number, "method": "tools/list", "params": {"cursor": cursor} if cursor else {}})
            page = answer(number)
            tools += page["tools"]
            cursor, number = page.get("nextCursor"), number + 1
            if not cursor:
                return tools
    finally:
        try:
            os.killpg(process.pid, 9)
        except ProcessLookupError:
            pass


def compact(server, tool):
    properties = (tool.get("inputSchema") or {}).get("properties") or {}
    title = tool.get("title") or (tool.get("annotations") or {}).get("title")
    row = {"server": server, "name": tool["name"]}
    if title:
        row["title"] = title
    row["description"] = shorten(tool.get("description"))
    row["parameters"] = [
        [name, shorten(value.get("description") if isinstance(value, dict) else "")[:200]]
        for name, value in properties.items()
    ]
    return row


def collect(entry, root):
    server = entry["server"]
    done = root / (server + ".json")
    if done.exists():
        return json.loads(done.read_text())
    folder = root / server
    try:
        if "npm" in entry:
            command, version, licence = install_npm(entry["npm"], folder, entry.get("npm_env", {}))
        else:
            command, version, licence = install_pypi(entry["pypi"], folder, entry.get("bin"))
        if not PERMISSIVE.search(licence) or re.search("GPL|FSL|BUSL|SSPL", licence):
            raise RuntimeError(f"licence {licence!r}")
        environment = dict(entry.get("env", {}))
        for key, value in environment.items():
            if value == "@creds":
                path = folder / "creds.json"
                path.write_text(json.dumps({"installed": {"client_id": "x", "client_secret": "x", "redirect_uris": ["http://localhost"]}}))
                environment[key] = str(path)
        tools = ask_for_tools(command + entry.get("args", []), environment, folder)
        result = {
            "server": server, "package": ("npm:" + entry["npm"]) if "npm" in entry else ("pypi:" + entry["pypi"]),
            "version": version, "licence": licence, "tools": [compact(server, tool) for tool in tools],
        }
        done.write_text(json.dumps(result))
        print(f"{server}: {len(tools)} tools, {licence}", file=sys.stderr, flush=True)
        return result
    except Exception as error:
        detail = getattr(error, "stderr", "") or ""
        print(f"{server}: skipped, {type(error).__name__} {str(error)[:200]} {str(detail)[-200:]}", file=sys.stderr, flush=True)
        return None


def main():
    root = Path(sys.argv[1])
    root.mkdir(parents=True, exist_ok=True)
    entries = json.loads((HERE / "servers.json").read_text())
    with ThreadPoolExecutor(4) as pool:
        results = [result for result in pool.map(lambda entry: collect(entry, root), entries) if result and result["tools"]]
    with open(HERE / "servers.jsonl", "w") as servers, open(HERE / "tools.jsonl", "w") as tools:
        for result in results:
            rows = result.pop("tools")
            servers.write(json.dumps({**result, "tools": len(rows)}) + "\n")
            tools.writelines(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)


if __name__ == "__main__":
    main()
