/**
 * What can be completed: the commands, options and arguments of the program, read from commander, from which alone the shell
 * scripts are made; and names that only the server knows.
 */

import { Readable } from 'node:stream'
import { type Argument, Command, type Option } from 'commander'
import type { ClientClock } from '../../client/clock.ts'
import { type Consumer, parseIdentity, type Value, valueToJson } from '../../client/index.ts'
import { runControl, SECRET_ARGUMENTS } from '../control.ts'
import { printable } from '../format.ts'
import { httpUrlOf, postForm } from '../http.ts'
import {
  type LoginOptions,
  resolveLogin,
  resolveToken,
  type TokenOptions,
  withLoginOptions,
  withTokenOptions,
} from '../login.ts'
import { controlParameters, findField, metricParameters, toRecords } from '../records.ts'
import type { Cli } from '../session.ts'
import type { Terminal } from '../terminal.ts'

/** What an argument can be: a name that only the server knows, a file, one of several words, or anything. */
export type ArgumentKind =
  | {
      readonly kind:
        | 'metric'
        | 'control'
        | 'channel'
        | 'sensor'
        | 'user'
        | 'argument'
        | 'expression'
        | 'file'
        | 'anything'
    }
  | { readonly kind: 'choice'; readonly choices: readonly string[] }

/** The kinds of names that are looked up at the server. */
export const lookedUpKinds = ['metric', 'control', 'channel', 'sensor', 'user', 'argument', 'expression'] as const

export interface CommandNode {
  /** The words of the command, such as "user add"; empty for the program. */
  readonly route: string
  readonly commands: readonly { readonly name: string; readonly description: string }[]
  readonly options: readonly OptionNode[]
  readonly places: readonly { readonly expected: ArgumentKind; readonly isRepeated: boolean }[]
}

export interface OptionNode {
  /** Such as `-h` and `--help`. */
  readonly flags: readonly string[]
  readonly description: string
  /** Undefined if the option takes no value. */
  readonly value: ArgumentKind | undefined
}

/** Returns the program, followed by all its visible commands. */
export function readTree(command: Command, route = ''): CommandNode[] {
  const help = command.createHelp()
  const commands = help.visibleCommands(command)
  const node: CommandNode = {
    route,
    commands: commands.map((one) => ({ name: one.name(), description: one.description() })),
    options: help.visibleOptions(command).map(toOption),
    places: command.registeredArguments.map((argument) => ({
      expected: kindOfArgument(argument),
      isRepeated: argument.variadic,
    })),
  }
  return [node, ...commands.flatMap((one) => readTree(one, route === '' ? one.name() : `${route} ${one.name()}`))]
}

function toOption(option: Option): OptionNode {
  return {
    flags: [option.short, option.long].filter((flag) => flag !== undefined),
    description: option.description,
    value: option.required || option.optional ? kindOfArgument(option) : undefined,
  }
}

/** Arguments and values of options that are called what they are. */
const NAMED = ['control', 'channel', 'sensor', 'user', 'expression', 'file'] as const

/** Derived from the declared choices, the name of the value, or the name of the option itself. */
function kindOfArgument(declared: Argument | Option): ArgumentKind {
  if (declared.argChoices) return { kind: 'choice', choices: declared.argChoices }
  const names =
    'flags' in declared ? [/[<[]([^>\]]+)/.exec(declared.flags)?.[1], declared.attributeName()] : [declared.name()]
  for (const name of names) {
    if (name === 'metric' || name === 'pattern') return { kind: 'metric' }
    if (name === 'name=value') return { kind: 'argument' }
    const kind = NAMED.find((one) => one === name)
    if (kind !== undefined) return { kind }
  }
  return { kind: 'anything' }
}

export type LookedUpKind = (typeof lookedUpKinds)[number]

const DEADLINE_MS = 1_000
/** Nobody could choose from more. */
const MAX_NAMES = 1_000

/**
 * Looks up names for a command line that is still being typed. It prompts for nothing, prints nothing, and gives up after a
 * moment. `words` are those typed after the program's name; the last one may be incomplete. Never rejects.
 */
export async function lookUpNames(
  { terminal, connect }: Cli,
  clock: ClientClock,
  kind: LookedUpKind,
  words: readonly string[],
): Promise<readonly string[]> {
  const abort = new AbortController()
  const late = new Promise<readonly string[]>((resolve) => {
    abort.signal.addEventListener('abort', () => resolve([]))
  })
  const timer = clock.setTimeout(() => abort.abort(), DEADLINE_MS)
  const silent = {
    ...terminal,
    input: Readable.from([]),
    note: () => {},
    askSecret: () => Promise.reject(new Error('completion does not prompt')),
  }
  const lookUp = async (): Promise<readonly string[]> => {
    if (kind === 'expression') return expressionsOf(silent, words, abort.signal)
    const { urls, credentials, transport } = await resolveLogin(
      optionsIn<LoginOptions>(withLoginOptions(new Command()), words),
      silent,
    )
    const options = { ...transport, reconnect: false, deadlineMs: DEADLINE_MS, signal: abort.signal, clock }
    const consumer = await connect(urls, credentials, options)
    abort.signal.addEventListener('abort', () => void consumer.close())
    try {
      const names = await NAMES[kind](consumer, words)
      // Names that cannot be written as one word are left out: they can be typed as a pattern.
      return names.filter((name) => name !== '' && name === printable(name))
    } finally {
      await consumer.close()
    }
  }
  try {
    return await Promise.race([lookUp(), late])
  } catch {
    return []
  } finally {
    timer.cancel()
    abort.abort()
  }
}

/** The expression with each name of a metric of the history that its last name begins. */
async function expressionsOf(
  terminal: Terminal,
  words: readonly string[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const word = (words.at(-1) ?? '').replace(/^['"]/, '')
  const [begun = ''] = /[a-zA-Z_:][a-zA-Z0-9_:]*$/.exec(word) ?? []
  const options = optionsIn<TokenOptions>(withTokenOptions(new Command(), ''), words)
  const { token, tls } = await resolveToken(options, terminal, 'COLLECT *')
  const url = await httpUrlOf(options, terminal, 'queries go to')
  const form = new URLSearchParams({ 'match[]': `{__name__=~"${begun}.*"}`, limit: String(MAX_NAMES) })
  const { body } = await postForm({ url, path: '/api/v1/label/__name__/values', token, tls }, form, signal)
  const { data } = JSON.parse(body) as { readonly data: readonly string[] }
  const before = word.slice(0, word.length - begun.length)
  // Others stand in quotes in an expression.
  return data.filter((name) => /^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name)).map((name) => before + name)
}

const NAMES: Readonly<
  Record<
    Exclude<LookedUpKind, 'expression'>,
    (consumer: Consumer, words: readonly string[]) => Promise<readonly string[]>
  >
> = {
  async metric(consumer, words) {
    const prefix = words.at(-1) ?? ''
    if (prefix.includes('*')) return []
    // What comes after a metric may be one of its arguments.
    const args = words.slice(0, -1).some(isDotted) ? await argumentsOf(consumer, words) : []
    const { value } = await consumer.query('producer.metrics', { match: `${prefix}*`, limit: MAX_NAMES })
    return [...args, ...column(value, 'name')]
  },
  async control(consumer) {
    return column((await consumer.query('producer.controls')).value, 'name')
  },
  async sensor(consumer) {
    return column((await consumer.query('producer.sensors')).value, 'name')
  },
  async channel(consumer) {
    const { value } = await consumer.query('producer.channels')
    const ids = column(value, 'channel').filter((id) => id !== String(consumer.channel))
    return [...ids, ...column(value, 'name')]
  },
  async user(consumer) {
    const { value } = await runControl(consumer, 'user.list', {})
    const tenants = column(value, 'tenant')
    // A user without a tenant belongs to the default one.
    return column(value, 'user').map((user, i) => {
      return tenants[i] === parseIdentity(user).tenant ? user : `${tenants[i]}/${user}`
    })
  },
  argument: argumentsOf,
}

/** Whether a word is a metric or control: the names of both have a dot, and those of arguments have none. */
function isDotted(word: string): boolean {
  return /^[^-=/][^=/]*\.[^/]*$/.test(word)
}

/** As `host=`; of the argument `producer`, the values that there are. */
async function argumentsOf(consumer: Consumer, words: readonly string[]): Promise<readonly string[]> {
  const [command] = words
  const of = words.slice(1, -1).find(isDotted)
  if (of === undefined) return []
  const parameters = await (command === 'exec' ? controlParameters(consumer, of) : metricParameters(consumer, of))
  const names = parameters.map(({ name }) => name).filter((name) => name !== 'producer')
  const shown = command === 'exec' ? names.filter((name) => !SECRET_ARGUMENTS.includes(name)) : names
  return [...shown.map((name) => `${name}=`), ...producersOf(consumer)]
}

/** As `producer=rack1`; none where the server consumes no other one [MON 9.13]. */
function producersOf({ capabilities }: Consumer): readonly string[] {
  const { producer, below = [] } = capabilities ?? {}
  const names = below.map(({ name }) => name)
  return [producer?.name ?? '', ...names]
    .filter((name) => name !== '' && names.length > 0)
    .map((name) => `producer=${name}`)
}

/** One field of each record, unformatted. */
function column(answer: Value, name: string): string[] {
  const records = toRecords(answer)?.records ?? []
  return records.flatMap((record) => findField(record, name) ?? []).map((field) => String(valueToJson(field)))
}

/** Parses the options of a command as the commands do. */
function optionsIn<Options extends object>(command: Command, words: readonly string[]): Options {
  command
    .exitOverride()
    .configureOutput({ writeErr: () => {} })
    .allowUnknownOption()
    .parseOptions([...words])
  return command.opts<Options>()
}
