/** What can be typed, read off the program itself: the shells' scripts are made from this and nothing else. */
import type { Argument, Command, Option } from 'commander'

/** What stands at a place: names that only the server knows, a file, one of some words, or anything. */
export type Expected =
  | { readonly kind: 'metric' | 'control' | 'channel' | 'sensor' | 'file' | 'anything' }
  | { readonly kind: 'choice'; readonly choices: readonly string[] }

/** The server is asked for these. */
export const askedKinds = ['metric', 'control', 'channel', 'sensor'] as const

export interface CommandNode {
  /** Its words, as "user add"; empty for the program. */
  readonly route: string
  readonly commands: readonly { readonly name: string; readonly description: string }[]
  readonly options: readonly OptionNode[]
  readonly places: readonly { readonly expected: Expected; readonly isRepeated: boolean }[]
}

export interface OptionNode {
  /** As `-h` and `--help`. */
  readonly flags: readonly string[]
  readonly description: string
  /** Undefined where it takes no value. */
  readonly value: Expected | undefined
}

/** The program and all its commands, hidden ones left out; the program first. */
export function readTree(command: Command, route = ''): CommandNode[] {
  const help = command.createHelp()
  const commands = help.visibleCommands(command)
  const node: CommandNode = {
    route,
    commands: commands.map((one) => ({ name: one.name(), description: one.description() })),
    options: help.visibleOptions(command).map(toOption),
    places: command.registeredArguments.map((argument) => ({
      expected: expectedOf(argument),
      isRepeated: argument.variadic,
    })),
  }
  return [node, ...commands.flatMap((one) => readTree(one, route === '' ? one.name() : `${route} ${one.name()}`))]
}

function toOption(option: Option): OptionNode {
  return {
    flags: [option.short, option.long].filter((flag) => flag !== undefined),
    description: option.description,
    value: option.required || option.optional ? expectedOf(option) : undefined,
  }
}

/** Told by the choices that are declared, by the name of the value, or by that of the option itself. */
function expectedOf(of: Argument | Option): Expected {
  if (of.argChoices) return { kind: 'choice', choices: of.argChoices }
  const names = 'flags' in of ? [/[<[]([^>\]]+)/.exec(of.flags)?.[1], of.attributeName()] : [of.name()]
  for (const name of names) {
    if (name === 'metric' || name === 'pattern') return { kind: 'metric' }
    if (name === 'control' || name === 'channel' || name === 'sensor' || name === 'file') return { kind: name }
  }
  return { kind: 'anything' }
}
