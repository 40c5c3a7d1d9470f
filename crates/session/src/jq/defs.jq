# What jq has and the library of jaq has not, or writes in another way.
def replaced($part; $other): split($part) | join($other);
def @csv: [.[] |
    if . == null then ""
  elif isnumber or isboolean then tostring
  elif isstring then "\"" + replaced("\""; "\"\"") + "\""
  else error("\(type) is not valid in a row of CSV") end] | join(",");
def @tsv: [.[] |
    if . == null then ""
  elif isnumber or isboolean then tostring
  elif isstring then replaced("\\"; "\\\\") | replaced("\t"; "\\t") | replaced("\n"; "\\n") | replaced("\r"; "\\r")
  else error("\(type) is not valid in a row of TSV") end] | join("\t");
def @html: tostring | escape_html | replaced("&apos;"; "&#39;");
def IN(s): . as $value | any(s; . == $value);
def IN(source; s): any(source | IN(s); .);
def INDEX(stream; f): reduce stream as $row ({}; .[$row | f | tostring] = $row);
def INDEX(f): INDEX(.[]; f);
def tostream: path(def leaves: (.[]? | leaves), .; leaves) as $path | getpath($path) |
  reduce path(.[]?) as $step ([$path, .]; [$path + $step]);
# The same as in jq, but they stop when the caller of the program has left.
def range(from; to; by): range_of(from; to; by) | still_awaited;
def range(from; to): range(from; to; 1);
def range(to): range(0; to);
def repeat(f): def rec: f, (still_awaited | rec); rec;
def recurse(f): def rec: ., (still_awaited | f | rec); rec;
def recurse: recurse(.[]?);
def recurse(f; cond): recurse(f | select(cond));
def while(cond; update): def rec: if cond then ., (still_awaited | update | rec) else empty end; rec;
def until(cond; update): def rec: if cond then . else still_awaited | update | rec end; rec;
