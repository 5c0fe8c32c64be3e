/** A command line without process and network: a terminal that remembers, and a producer that answers by a script. */
import { Readable } from 'node:stream'
import pc from 'picocolors'
import { run } from '../../cli/program.ts'
import type { Cli } from '../../cli/session.ts'
import type { Screen } from '../../cli/top/screen.ts'
import { type ConnectOptions, connect } from '../../client/index.ts'
import { XdrReader } from '../../protocol/bytes/reader.ts'
import {
  type CommandDeclaration,
  type CommandName,
  commandName,
  commands,
  readCommand,
} from '../../protocol/monitor/commands.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import type { Message } from '../../protocol/monitor/message.ts'
import { type StatusName, statuses } from '../../protocol/monitor/status.ts'
import type { Field, Value } from '../../protocol/monitor/value.ts'
import { FakeProducer } from '../client/fake-producer.ts'
import { caps } from '../client/wire.ts'
import { encodeMessage } from '../protocol/monitor/encode-message.ts'

/** A local time, so that what is printed does not depend on where the tests run. */
export const TIME = new Date(2023, 10, 14, 22, 13, 20, 5).getTime() * 1000

/** How a command is answered: with what result or status, and what follows. `metric` and `time` of a value are filled in. */
export interface Reply {
  readonly status?: StatusName
  readonly detail?: string
  readonly result?: number
  readonly followedBy?: readonly (Message | { readonly answer: Value; readonly transaction?: number })[]
}
export interface Asked {
  readonly name: CommandName
  /** The metric or control, with the arguments' plain values. */
  readonly of: string
  readonly args: Readonly<Record<string, unknown>>
  readonly fields: Readonly<Record<string, unknown>>
}
export type Script = (asked: Asked) => Reply | undefined

const METHODS = ['password', 'token', 'certificate']

export class ScriptedProducer extends FakeProducer {
  readonly asked: Asked[] = []
  readonly #script: Script
  #read = 0

  readonly #hangsUpAfter: CommandName | undefined

  constructor(script: Script, hangsUpAfter?: CommandName) {
    super()
    this.#script = script
    this.#hangsUpAfter = hangsUpAfter
  }

  override send(bytes: Uint8Array): void {
    super.send(bytes)
    for (const { command, seq, rest } of this.sent.slice(this.#read)) {
      this.#read++
      const name = commandName(command)!
      const fields = readCommand(commands[name] as CommandDeclaration, new XdrReader(rest)) as Record<string, unknown>
      const args = Object.fromEntries(((fields['args'] ?? []) as Field[]).map((field) => [field.name, field.value]))
      const asked = { name, of: String(fields['control'] ?? fields['metric'] ?? ''), args, fields }
      if (name !== 'AUTH') this.asked.push(asked)
      const reply = (name === 'AUTH' ? { result: 9 } : this.#script(asked)) ?? {}
      queueMicrotask(() => {
        this.#reply(seq, reply)
        if (name === 'AUTH') this.say(caps(...METHODS))
        if (name === this.#hangsUpAfter) this.hangUp()
      })
    }
  }

  override close(): void {
    super.close()
    this.hangUp()
  }

  #reply(seq: number, { status = 'OK', detail = '', result = 1, followedBy = [] }: Reply): void {
    const { code } = statuses[status]
    const messages: Message[] = [{ kind: 'response', seq, status: code, result: code === 0 ? result : 0, detail }]
    for (const message of followedBy) {
      if ('kind' in message) messages.push(message)
      else {
        const { answer, transaction = 0 } = message
        messages.push({ kind: 'value', metric: result, transaction, time: TIME, value: answer })
      }
    }
    this.say(...messages.map(encodeMessage))
  }
}

export interface Outcome {
  readonly code: number
  readonly out: readonly string[]
  readonly err: readonly string[]
  readonly producer: ScriptedProducer
}

export interface FakeOptions {
  /** How the program was called. */
  readonly program?: string
  readonly env?: NodeJS.ProcessEnv
  readonly secrets?: readonly string[]
  /** What is typed when the command asks something; without it there is no terminal to ask at. */
  readonly answers?: readonly string[]
  /** Whether the connection can be listened to. */
  readonly isOpenToOthers?: boolean
  /** Throws where nobody reads any more. */
  readonly onPrint?: (text: string, interrupt: () => void) => void
  readonly connect?: Cli['connect']
  /** How wide the terminal is; without it there is none. */
  readonly columns?: number
  /** The command after which the connection ends. */
  readonly hangsUpAfter?: CommandName
  /** Whether somebody watches stderr. */
  readonly isWatched?: boolean
  /** What stands in the standard input. */
  readonly input?: readonly Uint8Array[]
}

/** Runs a command line against a producer that answers by `script`. */
export async function runCli(argv: readonly string[], script?: Script, options?: FakeOptions): Promise<Outcome> {
  const { cli, ...outcome } = fakeCli(script, options)
  return { code: await run(argv, cli), ...outcome }
}

/** The same for what `run` does not reach. */
export function fakeCli(
  script: Script = () => ({}),
  options: FakeOptions = {},
): Omit<Outcome, 'code'> & { readonly cli: Cli } {
  const { env = { CINNABAR_USER: 'tc', CINNABAR_PASSWORD: 's3' }, secrets = [], onPrint } = options
  const producer = new ScriptedProducer(script, options.hangsUpAfter)
  const out: string[] = []
  const err: string[] = []
  const toAsk = [...secrets]
  const answers = options.answers && [...options.answers]
  const interrupts = new Set<() => void>()
  const cli: Cli = {
    terminal: {
      env,
      program: options.program ?? 'cinnabar',
      input: Readable.from(options.input ?? []),
      colors: pc.createColors(false),
      print: async (text) => {
        onPrint?.(text, () => {
          for (const interrupt of interrupts) interrupt()
        })
        out.push(...text.split('\n'))
      },
      isWatched: options.isWatched ?? false,
      screen: options.columns === undefined ? undefined : screen(options.columns),
      note: (text) => void err.push(...text.split('\n')),
      askSecret: async (question) => {
        err.push(question)
        return toAsk.shift() ?? ''
      },
      ask: async (question) => {
        if (answers !== undefined) err.push(question)
        return answers === undefined ? undefined : (answers.shift() ?? '')
      },
      onInterrupt(callback) {
        interrupts.add(callback)
        return () => interrupts.delete(callback)
      },
    },
    connect: options.connect ?? connectTo(producer, options.isOpenToOthers ?? false),
  }
  return { cli, out, err, producer }
}

function screen(columns: number): Screen {
  return { size: () => ({ columns, rows: 24 }), open: () => () => {}, write: () => {} }
}

function connectTo(producer: FakeProducer, isOpenToOthers: boolean): Cli['connect'] {
  return async (url, credentials, { channel, name, durable, reconnect }: ConnectOptions = {}) => {
    // A login by scram is tested elsewhere; here it would only take its time.
    const plain = 'identity' in credentials ? { ...credentials, methods: ['password' as const] } : credentials
    const opening = connect(url, plain, { dial: () => Promise.resolve(producer), channel, name, durable, reconnect })
    await producer.opened
    producer.say(caps(...METHODS))
    const consumer = await opening
    if (isOpenToOthers) Object.defineProperty(consumer, 'isConfidential', { value: false })
    return consumer
  }
}

export const string = (name: string, value: string): Field => ({ name, type: BasicType.STRING, value })
export const uint32 = (name: string, value: number): Field => ({ name, type: BasicType.UINT32, value })
export const uint64 = (name: string, value: bigint): Field => ({ name, type: BasicType.UINT64, value })
export const boolean = (name: string, value: boolean): Field => ({ name, type: BasicType.BOOLEAN, value })
export const double = (value: number): Value => ({ type: BasicType.DOUBLE, value })
export const rec = (...fields: readonly Field[]): Value => ({ type: BasicType.REC, value: fields })
export const list = (...records: readonly (readonly Field[])[]): Value => ({
  type: BasicType.ARRAY,
  value: { element: BasicType.REC, items: records },
})
export const MORE = [boolean('more', true)]
