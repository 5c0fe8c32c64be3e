/**
 * `mono.list`, `mono.add`, `mono.remove` and `mono.goodbye`: manual requests to an agent, which the sensor otherwise sends
 * as consumers need them. The outcome is `timeout` if the agent does not answer, `failed` if it disconnects.
 */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { VOID } from '../../../protocol/monitor/value.ts'
import { type MonoName, MonoStatus } from '../../../protocol/mono/messages.ts'
import {
  type Control,
  type ControlArguments,
  type ControlParameter,
  type ControlResult,
  failed,
  ok,
  RecordList,
} from '../../kit/controls.ts'
import { type Identity, maySee } from '../../kit/metrics.ts'
import { type Clock, StatusError } from '../../kit/running.ts'
import type { Answered, MonoAgent } from './agent.ts'
import type { MonoSensor } from './sensor.ts'

export interface MonoControlsOptions {
  /** One for each tenant. */
  readonly sensors: readonly MonoSensor[]
  readonly clock: Pick<Clock, 'setTimeout' | 'clear'>
  /** The tenants whose agents connect. */
  readonly tenants: readonly string[]
}

const ANSWER_MS = 10_000

const agentParameter: ControlParameter = {
  name: 'agent',
  type: BasicType.STRING,
  description: 'The name of the agent, as in the parameter `agent` of its metrics.',
}
const counterParameters: readonly ControlParameter[] = [
  agentParameter,
  { name: 'category', type: BasicType.STRING, description: 'The category as the agent names it, such as `Mono GC`.' },
  {
    name: 'counter',
    type: BasicType.STRING,
    description: 'The counter as the agent names it, such as `Major GC collections`.',
  },
]

export function monoControls({ sensors, clock, tenants }: MonoControlsOptions): Control[] {
  type Run = (agent: MonoAgent, counter: MonoName) => ControlResult | Promise<ControlResult>
  const control = (name: string, description: string, parameters: readonly ControlParameter[], run: Run): Control => ({
    name,
    description,
    parameters,
    tenants,
    prepare(args, { identity }) {
      const agent = agentOf(sensors, args, identity)
      return () => run(agent, counterOf(args))
    },
  })
  /** Sends a request about a counter. */
  const request = (agent: MonoAgent, counter: MonoName, send: (answered: Answered) => void) =>
    answered(clock, agent, (done) => {
      send((status) => done(status === undefined ? undefined : resultOf(agent, counter, status)))
    })
  return [
    {
      ...control('mono.list', 'Asks a Mono agent which counters it offers.', [agentParameter], (agent) =>
        answered(clock, agent, (done) => agent.list((counters) => done(counters && listOf(agent, counters)))),
      ),
      isRecorded: () => false,
    },
    control(
      'mono.add',
      'Makes a Mono agent send a counter, whether or not a consumer has chosen it.',
      counterParameters,
      (agent, counter) => {
        if (agent.find(counter)?.isAsked) return inProgress(agent, counter)
        return request(agent, counter, (done) => agent.add(counter, done))
      },
    ),
    control(
      'mono.remove',
      'Makes a Mono agent stop sending a counter that no consumer has chosen.',
      counterParameters,
      (agent, counter) => {
        const series = agent.find(counter)
        if (series?.isAsked) return inProgress(agent, counter)
        if (series?.header === undefined) return failed(`${agent.name} does not send ${wordsFor(counter)}`)
        if (series.isWanted)
          return failed(`consumers have chosen ${series.name}: the agent sends it until the last STOP`)
        return request(agent, counter, (done) => agent.remove(series, done))
      },
    ),
    control(
      'mono.goodbye',
      'Asks a Mono agent to disconnect; after 10 s the connection is closed.',
      [agentParameter],
      (agent) => {
        agent.goodBye()
        return ok(`${agent.name} was asked to disconnect`)
      },
    ),
  ]
}

/** Throws StatusError if there is no such agent, or it belongs to another tenant. */
function agentOf(sensors: readonly MonoSensor[], args: ControlArguments, identity: Identity): MonoAgent {
  const name = args.get('agent') as string
  const theirs = sensors.filter(({ owner }) => maySee(identity, owner))
  const agent = theirs.map((sensor) => sensor.agent(name)).find((found) => found !== undefined)
  if (agent === undefined) {
    const names = theirs.flatMap((sensor) => [...sensor.agents()]).slice(0, 5)
    const there = names.length === 0 ? 'none is connected' : `connected are ${names.join(', ')}`
    throw new StatusError('INVALID_ARGUMENT', `no Mono agent ${name}: ${there}`)
  }
  if (agent.isFile) throw new StatusError('INVALID_ARGUMENT', `${name} is a file, which cannot be asked`)
  if (!agent.isOpen) throw new StatusError('BUSY', `${name} has not answered earlier requests`)
  return agent
}

function counterOf(args: ControlArguments): MonoName {
  return { category: args.get('category') as string, name: args.get('counter') as string }
}

function wordsFor({ category, name }: MonoName): string {
  return `${category}: ${name}`
}

/** Two requests for one counter at once could not be told apart in the responses. */
function inProgress({ name }: MonoAgent, counter: MonoName): ControlResult {
  return failed(`a request to ${name} about ${wordsFor(counter)} is in progress`)
}

function resultOf(agent: MonoAgent, counter: MonoName, status: MonoStatus): ControlResult {
  const series = agent.find(counter)
  const value = { type: BasicType.STRING, value: series?.name ?? '' } as const
  if (status === MonoStatus.OK) return ok(`${agent.name}: done`, value)
  if (status === MonoStatus.NOTFOUND) return failed(`${agent.name} has no ${wordsFor(counter)}`)
  if (status !== MonoStatus.EXISTING) return failed(`${agent.name} refused the request`)
  if (series?.header !== undefined) return ok(`${agent.name} sends ${wordsFor(counter)} already`, value)
  return failed(`${agent.name} sends ${wordsFor(counter)} already, but does not report its index`)
}

/** ARRAY of REC {category, counter, metric; boolean sent}. */
function listOf(agent: MonoAgent, counters: readonly MonoName[]): ControlResult {
  const records = new RecordList()
  for (const counter of counters) {
    const series = agent.find(counter)
    const isShown = records.add([
      { name: 'category', type: BasicType.STRING, value: counter.category },
      { name: 'counter', type: BasicType.STRING, value: counter.name },
      { name: 'metric', type: BasicType.STRING, value: series?.name ?? '' },
      { name: 'sent', type: BasicType.BOOLEAN, value: series?.header !== undefined },
    ])
    if (!isShown) break
  }
  return ok(`${counters.length} counters`, records.value())
}

/** `ask` calls `done` with undefined if the connection ended. */
function answered(
  clock: Pick<Clock, 'setTimeout' | 'clear'>,
  { name, isOpen }: MonoAgent,
  ask: (done: (result: ControlResult | undefined) => void) => void,
): Promise<ControlResult> | ControlResult {
  if (!isOpen) return failed(`${name} disconnected`)
  return new Promise((resolve) => {
    const timer = clock.setTimeout(() => {
      resolve({ outcome: 'timeout', detail: `${name} did not answer within ${ANSWER_MS / 1000} s`, value: VOID })
    }, ANSWER_MS)
    ask((result) => {
      clock.clear(timer)
      resolve(result ?? failed(`${name} disconnected`))
    })
  })
}
