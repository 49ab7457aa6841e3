# A typical program: a turn on standard input, as JSON, and the reply on standard output. Its arguments select its behaviour.
what=$1
output=$2
read -r turn

say() {
  if [ "$output" = text ]; then printf '%s' "$1"; else printf '{"text":"%s"}\n' "$1"; fi
}

if [ "$what" = fail ]; then
  echo 'Error: no such model' >&2
  echo '    at answer (/srv/agent/node_modules/agent.js:7)' >&2
  exit 3
fi
case $turn in
  '{"kind":"summarise",'*) say 'They talked.'; exit ;;
esac
if [ "$what" = slow ]; then
  for n in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do
    say "piece $n "
    sleep 0.1
  done
  exit
fi
if [ "$what" = paced ]; then
  for n in 0 1 2 3; do
    say "piece $n "
    sleep 0.01
  done
  exit
fi
say '> '
say "$(printf '%s' "$turn" | sed 's/.*"message":{"text":"\([^"]*\)".*/\1/')"
[ "$output" = text ] || echo '{"usage":{"input":7,"output":3}}'
