/**
 * The controls of an upstream: their catalogue, and what runs one of them there [MON 9.13]. It is sent with a key of its own, so that
 * it can be sent again after a lost connection, and runs once.
 */
import { createHash } from 'node:crypto'
import { ConnectionError, StatusError as Refusal } from '../../../client/errors.ts'
import type { ArgumentList } from '../../../protocol/monitor/arguments.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { typeNamed } from '../../../protocol/monitor/json.ts'
import { type Field, type Value, VOID } from '../../../protocol/monitor/value.ts'
import {
  type Control,
  type ControlArguments,
  type ControlContext,
  type ControlParameter,
  type ControlResult,
  DRY_RUN_PARAMETER,
  encodeResult,
  failed,
  KEY_PARAMETER,
  ON_BEHALF_OF_PARAMETER,
  outcomes,
  REPEAT_ONLY_PARAMETER,
} from '../../kit/controls.ts'
import { PRODUCER } from '../../kit/producers.ts'
import { type Clock, StatusError } from '../../kit/running.ts'
import type { UpstreamSession } from './session.ts'

const { ARRAY, BOOLEAN, REC, STRING, UINT32 } = BasicType
const DEADLINE_MS = 60_000
const MAX_DEADLINE_MS = 600_000
/** How often it is looked whether there is a connection again. */
const LOOK_MS = 100
const DEADLINE = 'deadline_ms'

/** Bytes of what a dry run there has come to, as it is shown here to whoever decides. */
const MAX_DRY_RUN_BYTES = 65_536
/** As `on_behalf_of` may have. */
const MAX_ACTOR_BYTES = 1_024

/** What the upstream says of one of its controls. */
export interface ControlThere {
  readonly name: string
  /** The path of the producer that it consumes and that has it; empty if it is its own. */
  readonly producer: string
  readonly description: string
  readonly parameters: readonly ControlParameter[]
}

export interface RemoteRun {
  /** The path of the producer, here. */
  readonly producer: string
  /** Names this server and the upstream in the keys that are sent. */
  readonly id: string
  readonly clock: Pick<Clock, 'monotonicMs' | 'setTimeout'>
  /** The connection, while there is one that can be used. */
  readonly session: () => UpstreamSession | undefined
}

/** As a control of this server. */
export function remoteControl(there: ControlThere, run: RemoteRun): Control {
  const own = there.parameters.filter(({ name }) => name !== PRODUCER && name !== DEADLINE)
  return {
    name: there.name,
    description: there.description,
    isKeyed: true,
    parameters: [
      ...own,
      { name: PRODUCER, type: STRING, description: 'The server that runs it.' },
      {
        name: DEADLINE,
        type: UINT32,
        optional: true,
        min: 1,
        max: MAX_DEADLINE_MS,
        default: DEADLINE_MS,
        description: 'How long it is tried to learn the result, in milliseconds.',
      },
    ],
    prepare(args, context) {
      if (run.session() === undefined) {
        throw new StatusError('BUSY', `producer ${run.producer} is not connected: nothing ran`)
      }
      if (Buffer.byteLength(actorsOf(context)) > MAX_ACTOR_BYTES) {
        throw new StatusError(
          'INVALID_ARGUMENT',
          `${ON_BEHALF_OF_PARAMETER} is too long to be passed on with your name`,
        )
      }
      return (signal) => new CallBelow(there, own, args, context, run).result(signal, [])
    },
    dryRun: (args, context) => (signal) => new CallBelow(there, own, args, context, run).dryRun(signal),
    learn: (args, context) => (signal) =>
      new CallBelow(there, own, args, context, run).result(signal, [flag(REPEAT_ONLY_PARAMETER)]),
  }
}

/** One EXECUTE, as it is sent to the upstream. */
class CallBelow {
  readonly #name: string
  readonly #list: ArgumentList
  readonly #run: RemoteRun
  readonly #deadlineMs: number
  /** The key here; empty for a dry run, which needs none. */
  readonly #key: string
  readonly #actor: string
  /** The actor, and whom it claims to act for. */
  readonly #onBehalfOf: string

  constructor(
    { name, producer: rest }: ControlThere,
    parameters: readonly ControlParameter[],
    args: ControlArguments,
    context: Pick<ControlContext, 'identity' | 'key' | 'onBehalfOf'>,
    run: RemoteRun,
  ) {
    const given = parameters.flatMap(({ name, type }) => {
      const value = args.get(name)
      return value === undefined ? [] : ([{ name, type, value }] as ArgumentList)
    })
    this.#name = name
    this.#list = [...given, ...(rest === '' ? [] : [text(PRODUCER, rest)])]
    this.#run = run
    this.#deadlineMs = args.get(DEADLINE) as number
    this.#key = context.key ?? ''
    this.#actor = actorOf(context)
    this.#onBehalfOf = actorsOf(context)
  }

  /** What it comes to there. After a lost connection the same is sent again. */
  async result(signal: AbortSignal, more: ArgumentList): Promise<ControlResult> {
    const { id, clock, session, producer } = this.#run
    const key = keyBelow(id, this.#actor, this.#key)
    const sent = [...this.#list, text(KEY_PARAMETER, key), text(ON_BEHALF_OF_PARAMETER, this.#onBehalfOf), ...more]
    const endMs = clock.monotonicMs() + this.#deadlineMs
    let why = 'this server stopped before there was a result'
    let isFirst = true
    while (!signal.aborted) {
      const leftMs = endMs - clock.monotonicMs()
      if (leftMs <= 0) {
        why = `there was no result within ${this.#deadlineMs / 1000} s`
        if (session() === undefined) why += ', and the connection is lost'
        break
      }
      const connected = session()
      if (connected === undefined) {
        await new Promise<void>((resolve) => void clock.setTimeout(resolve, Math.min(LOOK_MS, leftMs)))
        continue
      }
      try {
        const { value } = await connected.execute(this.#name, sent, leftMs, signal)
        return resultOf(value)
      } catch (error) {
        if (error instanceof Refusal) {
          const said = `${producer}: ${error.detail || error.message}`
          if (more.length > 0) return this.#unknown(said)
          // Much is judged there before the key is looked up, so that the refusal says nothing of an earlier attempt.
          return isFirst
            ? failed(said)
            : this.#unknown(`${said}: refused when it was sent again after a lost connection`)
        }
        if (!(error instanceof ConnectionError || signal.aborted)) throw error
        isFirst = false
      }
    }
    return this.#unknown(`${producer}: ${why}`)
  }

  #unknown(why: string): ControlResult {
    const advice = `the same with ${KEY_PARAMETER}=${this.#key} asks again for its result`
    const detail = `${why}; it may have run there, may run yet, or wait for approval there: ${advice}`
    return { outcome: 'unknown', detail, value: VOID }
  }

  /** What a dry run there comes to. Nothing is sent again: it may be made again. */
  async dryRun(signal: AbortSignal): Promise<ControlResult> {
    const { session, producer } = this.#run
    const connected = session()
    if (connected === undefined) return failed(`producer ${producer} is not connected`)
    const sent = [...this.#list, flag(DRY_RUN_PARAMETER), text(ON_BEHALF_OF_PARAMETER, this.#onBehalfOf)]
    try {
      const { value } = await connected.execute(this.#name, sent, this.#deadlineMs, signal)
      const result = resultOf(value)
      if (encodeResult(result).length <= MAX_DRY_RUN_BYTES) return result
      return failed(`${producer}: the dry run has come to more than ${MAX_DRY_RUN_BYTES} bytes`)
    } catch (error) {
      if (error instanceof Refusal) return failed(`${producer}: ${error.detail || error.message}`)
      if (!(error instanceof ConnectionError || signal.aborted)) throw error
      const detail = `${producer}: the dry run has not ended, or the connection was lost before`
      return { outcome: 'timeout', detail, value: VOID }
    }
  }
}

function text(name: string, value: string) {
  return { name, type: STRING, value } as const
}

function flag(name: string) {
  return { name, type: BOOLEAN, value: true } as const
}

function actorOf({ identity: { tenant, name } }: Pick<ControlContext, 'identity'>): string {
  return `${tenant}/${name}`
}

/** Who asks, and then whom they claim to act for: where a server asks, that is who has asked it. */
function actorsOf(context: Pick<ControlContext, 'identity' | 'onBehalfOf'>): string {
  return [actorOf(context), context.onBehalfOf].filter((one) => one !== undefined).join(', ')
}

/** The same for the same key of the same actor of this server, and another one for all others. */
function keyBelow(id: string, actor: string, key: string): string {
  return createHash('sha256')
    .update(JSON.stringify([id, actor, key]))
    .digest('base64url')
}

function resultOf(value: Value): ControlResult {
  const fields: readonly Field[] = value.type === REC ? value.value : []
  const text = (name: string): string => String(fields.find((field) => field.name === name)?.value ?? '')
  const { name: _, ...result } = fields.find(({ name }) => name === 'value') ?? { name: '', ...VOID }
  const outcome = text('outcome')
  return { outcome: isOutcome(outcome) ? outcome : 'unknown', detail: text('detail'), value: result as Value }
}

function isOutcome(text: string): text is ControlResult['outcome'] {
  return (outcomes as readonly string[]).includes(text)
}

/** The controls of an answer to `producer.controls`. */
export function controlsIn(value: Value): ControlThere[] {
  if (value.type !== ARRAY || value.value.element !== REC) return []
  return (value.value.items as readonly (readonly Field[])[]).flatMap((record) => {
    const name = textOf(record, 'name')
    if (name === '') return []
    const list = record.find((field) => field.name === 'parameters')
    const parameters = list?.type === ARRAY ? (list.value.items as readonly (readonly Field[])[]) : []
    const [description, producer] = [textOf(record, 'description'), textOf(record, 'producer')]
    return [{ name, description, producer, parameters: parameters.flatMap(parameterOf) }]
  })
}

/** Whether an answer to `producer.controls` does not have all of them. */
export function isCutOff(value: Value): boolean {
  if (value.type !== ARRAY || value.value.element !== REC) return false
  const last = (value.value.items as readonly (readonly Field[])[]).at(-1)
  return last?.some(({ name, value }) => name === 'more' && value === true) === true
}

/** What bounds the values is judged there. Only the upstream knows which part of a masked value is secret: here all of it is. */
function parameterOf(record: readonly Field[]): ControlParameter[] {
  const type = typeNamed(textOf(record, 'type'))
  if (type === undefined) return []
  const flag = (name: string): boolean => record.find((field) => field.name === name)?.value === true
  return [
    {
      name: textOf(record, 'name'),
      type,
      optional: flag('optional'),
      description: textOf(record, 'description'),
      ...((flag('secret') || flag('masked')) && { secret: true }),
    },
  ]
}

function textOf(record: readonly Field[], name: string): string {
  const value = record.find((field) => field.name === name)?.value
  return typeof value === 'string' ? value : ''
}
