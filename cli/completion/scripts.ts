/**
 * The completion scripts. Those for bash and zsh share the cases that find out what is being typed. Quotes distinguish
 * words from patterns; everything in the scripts comes from the program itself.
 */
import { type ArgumentKind, type CommandNode, lookedUpKinds, type OptionNode } from './tree.ts'

/** Cases for "route:word", which lead to a subcommand or to the value of an option. */
function wordCases(tree: readonly CommandNode[]): string[] {
  return tree.flatMap(({ route, commands, options }) => [
    ...commands.map(({ name }) => `${quoted(`${route}:${name}`)}) route=${quoted(joined(route, name))} place=0 ;;`),
    ...options
      .filter(({ value }) => value !== undefined)
      .map(({ flags, value }) => {
        const words = flags.map((flag) => quoted(`${route}:${flag}`)).join('|')
        return `${words}) kind=${quoted(kindText(value as ArgumentKind))} ;;`
      }),
  ])
}

/** Cases for "route:place", the argument at a place; `also` are the subcommands possible there. */
function placeCases(tree: readonly CommandNode[]): string[] {
  return tree.flatMap(({ route, commands, places }) => {
    const own = places
      .map(({ expected, isRepeated }, i) => ({
        expected,
        at: isRepeated ? `${quoted(`${route}:`)}*` : quoted(`${route}:${i}`),
        also: i === 0 && commands.length > 0 ? ` also=${quoted(names(commands))}` : '',
      }))
      .filter(({ expected }) => expected.kind !== 'anything')
      .map(({ expected, at, also }) => `${at}) kind=${quoted(kindText(expected))}${also} ;;`)
    if (commands.length === 0 || own.length > 0) return own
    return [`${quoted(`${route}:0`)}) kind=${quoted(`choice ${names(commands)}`)} ;;`]
  })
}

function names(commands: CommandNode['commands']): string {
  return commands.map(({ name }) => name).join(' ')
}

/** "metric", "file", or "choice" and the words. */
function kindText(expected: ArgumentKind): string {
  return expected.kind === 'choice' ? `choice ${expected.choices.join(' ')}` : expected.kind
}

function joined(route: string, name: string): string {
  return route === '' ? name : `${route} ${name}`
}

/** Quotes for bash and zsh. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

/**
 * Whoever sends metrics chooses their names, so they are never passed to `compgen -W`, which would expand them, and they are
 * quoted on the command line.
 */
export function bashScript(tree: readonly CommandNode[]): string {
  const options = tree.map(({ route, options }) => {
    const flags = options.flatMap((option) => option.flags)
    return `${quoted(route)}) kind=${quoted(`choice ${flags.join(' ')}`)} ;;`
  })
  return `# Completion of cinnabar for bash, made by \`cinnabar completion bash\`.
_cinnabar() {
  local IFS=$' \\t\\n'
  local line=\${COMP_LINE:0:COMP_POINT} piece=\${COMP_WORDS[COMP_CWORD]} route='' kind='' also='' place=0 front='' word i
  local -a words
  # COMP_WORDS splits words at colons and "="; bash replaces only the last piece.
  read -ra words <<< "$line"
  if [[ $piece == [\\'\\"]* ]]; then
    # An expression in quotes is one word, blanks and all, and bash leaves the quote in its place.
    read -ra words <<< "\${line%"$piece"}"
    piece=\${piece:1}
    words+=("$piece")
  elif [[ $line == *[[:space:]] ]]; then
    words+=('')
  fi
  local last=$((\${#words[@]} - 1))
  local current=\${words[last]}
  [[ $piece == [:=] ]] && piece=''
  local whole=$current
  for ((i = 1; i < last; i++)); do
    if [[ -n $kind ]]; then
      kind=''
      continue
    fi
    word=\${words[i]}
    case "$route:$word" in
${indented(wordCases(tree), 6)}
      *:-*) ;;
      *) place=$((place + 1)) ;;
    esac
  done
  if [[ -z $kind && $current == --*=* ]]; then
    front=\${current%%=*}=
    case "$route:\${current%%=*}" in
${indented(wordCases(tree), 6)}
    esac
    current=\${current#*=}
  elif [[ -z $kind && $current == -* ]]; then
    case "$route" in
${indented(options, 6)}
    esac
  elif [[ -z $kind ]]; then
    case "$route:$place" in
${indented(placeCases(tree), 6)}
    esac
  fi
  local -a found=()
  read -ra found <<< "$also"
  case "$kind" in
    'choice '*) read -ra found <<< "\${kind#choice }" ;;
    file)
      compopt -o filenames 2> /dev/null
      while IFS= read -r word; do found+=("$word"); done < <(compgen -f -- "$current")
      ;;
    ${lookedUpKinds.join('|')})
      while IFS= read -r word; do
        # An expression ends with a name, in which nothing is special; what stands before it was typed.
        [[ $kind == expression ]] || word=$(printf '%q' "$word")
        found+=("$word")
      done < <(
        "$1" complete "$kind" -- "\${words[@]:1}" 2> /dev/null < /dev/null
      )
      [[ $kind == expression ]] && compopt -o nospace 2> /dev/null
      ;;
  esac
  COMPREPLY=()
  local before=\${whole%"$piece"}
  for word in "\${found[@]}"; do
    [[ $word == "$current"* ]] || continue
    word=$front$word
    COMPREPLY+=("\${word#"$before"}")
  done
  if [[ \${COMPREPLY[0]:-} == *= ]]; then
    compopt -o nospace 2> /dev/null
  fi
}
complete -F _cinnabar cinnabar`
}

/** The script is autoloaded as _cinnabar, or sourced after compinit. zsh quotes what it inserts by itself. */
export function zshScript(tree: readonly CommandNode[]): string {
  const options = tree.map(({ route, options }) => {
    const described = options.flatMap(({ flags, description }) => flags.map((flag) => item(flag, description)))
    return `${quoted(route)}) described=(${described.join(' ')}) ;;`
  })
  const commands = tree
    .filter(({ commands }) => commands.length > 0)
    .map(({ route, commands, places: [first] }) => {
      const described = commands.map(({ name, description }) => item(name, description))
      const kind = first && first.expected.kind !== 'anything' ? ` kind=${quoted(kindText(first.expected))}` : ''
      return `${quoted(`${route}:0`)}) described=(${described.join(' ')})${kind} ;;`
    })
  const places = placeCases(tree.filter(({ commands }) => commands.length === 0))
  return `#compdef cinnabar
# Completion of cinnabar for zsh, made by \`cinnabar completion zsh\`.
_cinnabar() {
  local route='' kind='' word=''
  local -i place=0 i
  local -a described found
  for ((i = 2; i < CURRENT; i++)); do
    if [[ -n $kind ]]; then
      kind=''
      continue
    fi
    word=\${(Q)words[i]}
    case "$route:$word" in
${indented(wordCases(tree), 6)}
      *:-*) ;;
      *) place=$((place + 1)) ;;
    esac
  done
  if [[ -z $kind && $PREFIX == --*=* ]]; then
    case "$route:\${PREFIX%%=*}" in
${indented(wordCases(tree), 6)}
    esac
    compset -P '*='
  elif [[ -z $kind && $PREFIX == -* ]]; then
    case "$route" in
${indented(options, 6)}
    esac
    _describe -o option described
    return
  elif [[ -z $kind ]]; then
    case "$route:$place" in
${indented([...commands, ...places], 6)}
    esac
  fi
  if (( \${#described} )); then
    _describe command described
  fi
  case "$kind" in
    'choice '*) compadd -- \${=kind#choice } ;;
    file) _files ;;
    ${lookedUpKinds.join('|')})
      found=("\${(@f)$("\${(Q)words[1]}" complete "$kind" -- "\${(@Q)words[2,CURRENT]}" 2> /dev/null < /dev/null)}")
      if [[ -n $found[1] ]]; then
        compadd -S '' -- "\${(@M)found:#*=}"
        compadd -- "\${(@)found:#*=}"
      fi
      ;;
  esac
}
if [[ $funcstack[1] == _cinnabar ]]; then
  _cinnabar "$@"
else
  compdef _cinnabar cinnabar
fi`
}

/** "name:description": a colon ends the name. */
function item(name: string, description: string): string {
  return quoted(`${name.replaceAll(':', '\\:')}:${description}`)
}

function indented(lines: readonly string[], by: number): string {
  return lines.map((line) => ' '.repeat(by) + line).join('\n')
}

/** fish quotes what it inserts by itself. */
export function fishScript(tree: readonly CommandNode[]): string {
  return `# Completion of cinnabar for fish, made by \`cinnabar completion fish\`.
# Succeeds if the given command is being typed, and, if a place is given, its argument at that place (from 0).
function __cinnabar_at
    set -l route ''
    set -l place 0
    set -l isvalue 0
    for word in (commandline -opc)[2..-1]
        if test $isvalue = 1
            set isvalue 0
            continue
        end
        switch "$route:$word"
${tree.flatMap(moves).join('\n')}
            case '*:-*'
            case '*'
                set place (math $place + 1)
        end
    end
    test "$route" = "$argv[1]"; and begin
        not set -q argv[2]; or test "$argv[2]" = $place
    end
end
function __cinnabar_ask
    set -l words (commandline -opc)
    command $words[1] complete $argv[1] -- $words[2..-1] (commandline -ct) 2>/dev/null </dev/null
end
complete -c cinnabar -f
${tree.flatMap(completions).join('\n')}`
}

/** Cases for the words that lead to a subcommand, and for the options that take the next word as value. */
function moves({ route, commands, options }: CommandNode): string[] {
  const valued = options.filter(({ value }) => value !== undefined).flatMap(({ flags }) => flags)
  return [
    ...commands.flatMap(({ name }) => [
      `            case ${fishQuoted(`${route}:${name}`)}`,
      `                set route ${fishQuoted(route === '' ? name : `${route} ${name}`)}`,
      '                set place 0',
    ]),
    ...(valued.length === 0
      ? []
      : [
          `            case ${valued.map((flag) => fishQuoted(`${route}:${flag}`)).join(' ')}`,
          '                set isvalue 1',
        ]),
  ]
}

function completions({ route, commands, options, places }: CommandNode): string[] {
  const at = (place?: number) =>
    fishQuoted(`__cinnabar_at ${fishQuoted(route)}${place === undefined ? '' : ` ${place}`}`)
  const line = (place: number | undefined, rest: string) => `complete -c cinnabar -n ${at(place)} ${rest}`
  return [
    ...commands.map(({ name, description }) => line(0, `-a ${fishQuoted(name)} -d ${fishQuoted(description)}`)),
    ...options.map((option) => line(undefined, toFlags(option))),
    ...places
      .map(({ expected, isRepeated }, i) => ({ expected, place: isRepeated ? undefined : i }))
      .filter(({ expected }) => expected.kind !== 'anything')
      .map(({ expected, place }) => line(place, expected.kind === 'file' ? '-F' : `-a ${listed(expected)}`)),
  ]
}

function toFlags({ flags, description, value }: OptionNode): string {
  const names = flags.map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`))
  const takes = value === undefined ? [] : [value.kind === 'file' ? '-r -F' : `-x${list(value)}`]
  return [...names, ...takes, `-d ${fishQuoted(description)}`].join(' ')
}

function list(value: ArgumentKind): string {
  return value.kind === 'anything' ? '' : ` -a ${listed(value)}`
}

function listed(expected: ArgumentKind): string {
  return fishQuoted(expected.kind === 'choice' ? expected.choices.join(' ') : `(__cinnabar_ask ${expected.kind})`)
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
