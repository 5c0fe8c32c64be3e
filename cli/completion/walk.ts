/**
 * The cases by which the scripts for bash and zsh find out what is being typed, which both shells write in the same way.
 * Words are told from patterns by quotes; nothing in here comes from outside of the program.
 */
import type { CommandNode, Expected } from './tree.ts'

/** By "route:word": into a subcommand, or to what an option takes. */
export function wordCases(tree: readonly CommandNode[]): string[] {
  return tree.flatMap(({ route, commands, options }) => [
    ...commands.map(({ name }) => `${quoted(`${route}:${name}`)}) route=${quoted(joined(route, name))} place=0 ;;`),
    ...options
      .filter(({ value }) => value !== undefined)
      .map(({ flags, value }) => {
        const words = flags.map((flag) => quoted(`${route}:${flag}`)).join('|')
        return `${words}) kind=${quoted(told(value as Expected))} ;;`
      }),
  ])
}

/** By "route:place": what stands there where it is no option; `also` are subcommands beside it. */
export function placeCases(tree: readonly CommandNode[]): string[] {
  return tree.flatMap(({ route, commands, places }) => {
    const own = places
      .map(({ expected, isRepeated }, i) => ({
        expected,
        at: isRepeated ? `${quoted(`${route}:`)}*` : quoted(`${route}:${i}`),
        also: i === 0 && commands.length > 0 ? ` also=${quoted(names(commands))}` : '',
      }))
      .filter(({ expected }) => expected.kind !== 'anything')
      .map(({ expected, at, also }) => `${at}) kind=${quoted(told(expected))}${also} ;;`)
    if (commands.length === 0 || own.length > 0) return own
    return [`${quoted(`${route}:0`)}) kind=${quoted(`choice ${names(commands)}`)} ;;`]
  })
}

function names(commands: CommandNode['commands']): string {
  return commands.map(({ name }) => name).join(' ')
}

/** "metric", "file", or "choice" and the words. */
export function told(expected: Expected): string {
  return expected.kind === 'choice' ? `choice ${expected.choices.join(' ')}` : expected.kind
}

function joined(route: string, name: string): string {
  return route === '' ? name : `${route} ${name}`
}

/** For bash and zsh. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
