# What jq has and the library of jaq has not.
def @csv: [.[] |
    if . == null then ""
  elif isnumber or isboolean then tostring
  elif isstring then "\"" + escape_csv + "\""
  else error("\(type) is not valid in a row of CSV") end] | join(",");
def @tsv: [.[] |
    if . == null then ""
  elif isnumber or isboolean then tostring
  elif isstring then escape_tsv
  else error("\(type) is not valid in a row of TSV") end] | join("\t");
def IN(s): . as $value | any(s; . == $value);
def IN(source; s): any(source | IN(s); .);
def INDEX(stream; f): reduce stream as $row ({}; .[$row | f | tostring] = $row);
def INDEX(f): INDEX(.[]; f);
def tostream: path(def leaves: (.[]? | leaves), .; leaves) as $path | getpath($path) |
  reduce path(.[]?) as $step ([$path, .]; [$path + $step]);
