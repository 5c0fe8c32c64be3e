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
  failed,
  KEY_PARAMETER,
  ON_BEHALF_OF_PARAMETER,
  outcomes,
} from '../../kit/controls.ts'
import { PRODUCER } from '../../kit/producers.ts'
import { type Clock, StatusError } from '../../kit/running.ts'
import type { UpstreamSession } from './session.ts'

const { STRING, UINT32, REC, ARRAY } = BasicType
const DEADLINE_MS = 60_000
const MAX_DEADLINE_MS = 600_000
/** How often it is looked whether there is a connection again. */
const LOOK_MS = 100
const DEADLINE = 'deadline_ms'

const UNKNOWN: ControlResult = {
  outcome: 'unknown',
  detail: 'the connection to the producer was lost, and it is not known whether the control ran there',
  value: VOID,
}

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
      return (signal) => execute(there, own, args, context, run, signal)
    },
  }
}

async function execute(
  { name, producer: rest }: ControlThere,
  parameters: readonly ControlParameter[],
  args: ControlArguments,
  { identity, key = '' }: ControlContext,
  { producer, id, clock, session }: RemoteRun,
  signal: AbortSignal,
): Promise<ControlResult> {
  const actor = `${identity.tenant}/${identity.name}`
  const given = parameters.flatMap(({ name, type }) => {
    const value = args.get(name)
    return value === undefined ? [] : ([{ name, type, value }] as ArgumentList)
  })
  const sent: ArgumentList = [
    ...given,
    ...(rest === '' ? [] : [{ name: PRODUCER, type: STRING, value: rest } as const]),
    { name: KEY_PARAMETER, type: STRING, value: keyBelow(id, actor, key) },
    { name: ON_BEHALF_OF_PARAMETER, type: STRING, value: actor },
  ]
  const endMs = clock.monotonicMs() + (args.get(DEADLINE) as number)
  while (!signal.aborted) {
    const leftMs = endMs - clock.monotonicMs()
    if (leftMs <= 0) return UNKNOWN
    const connected = session()
    if (connected === undefined) {
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, Math.min(LOOK_MS, leftMs)))
      continue
    }
    try {
      const { value } = await connected.execute(name, sent, leftMs)
      return resultOf(value)
    } catch (error) {
      // It was refused, and has not run; an earlier attempt would have given its result.
      if (error instanceof Refusal) return failed(`${producer}: ${error.detail || error.message}`)
      if (!(error instanceof ConnectionError)) throw error
    }
  }
  return UNKNOWN
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

/** What bounds the values is judged there. */
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
      ...(flag('secret') && { secret: true }),
    },
  ]
}

function textOf(record: readonly Field[], name: string): string {
  const value = record.find((field) => field.name === name)?.value
  return typeof value === 'string' ? value : ''
}
