/**
 * `mono.list`, `mono.add`, `mono.remove` and `mono.goodbye`: asks an agent by hand what consumers otherwise make the sensor
 * ask by themselves. An agent that does not answer gives `timeout`, one that goes away meanwhile `failed`.
 */
import { type Identity, mayRead } from '../../../auth/permissions.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { VOID } from '../../../protocol/monitor/value.ts'
import { type MonoName, MonoStatus } from '../../../protocol/mono/constants.ts'
import {
  type Control,
  type ControlArguments,
  type ControlParameter,
  type ControlResult,
  failed,
  ok,
} from '../../controls/control.ts'
import type { Clock } from '../../core/clock.ts'
import { StatusError } from '../../core/errors.ts'
import type { Hub } from '../../metrics/hub.ts'
import { RecordList } from '../../metrics/measure.ts'
import type { MonoAgent } from './agent.ts'
import { MonoSensor } from './sensor.ts'

export interface MonoControlsOptions {
  readonly hub: Pick<Hub, 'sensors'>
  readonly clock: Pick<Clock, 'setTimeout' | 'clear'>
  /** The tenants whose agents connect. */
  readonly tenants: readonly string[]
}

const ANSWER_MS = 10_000

const agentParameter: ControlParameter = {
  name: 'agent',
  type: BasicType.STRING,
  description: 'Its name, as in the parameter `agent` of its metrics.',
}
const counterParameters: readonly ControlParameter[] = [
  agentParameter,
  { name: 'category', type: BasicType.STRING, description: 'As the agent calls it, like `Mono GC`.' },
  { name: 'counter', type: BasicType.STRING, description: 'As the agent calls it, like `Major GC collections`.' },
]

export function monoControls({ hub, clock, tenants }: MonoControlsOptions): Control[] {
  const list: Control = {
    name: 'mono.list',
    description: 'Asks a Mono agent which counters it offers.',
    parameters: [agentParameter],
    tenants,
    prepare(args, { identity }) {
      const agent = agentOf(hub, args, identity)
      return () => answered(clock, agent, (done) => agent.list((counters) => done(counters && shown(agent, counters))))
    },
  }
  const add: Control = {
    name: 'mono.add',
    description: 'Makes a Mono agent send a counter, whether anybody wants it or not.',
    parameters: counterParameters,
    tenants,
    prepare(args, { identity }) {
      const agent = agentOf(hub, args, identity)
      const called = calledOf(args)
      return () => {
        if (agent.find(called)?.isAsked) return asked(agent, called)
        return answered(clock, agent, (done) => {
          agent.add(called, (status) => done(status === undefined ? undefined : resultOf(agent, called, status)))
        })
      }
    },
  }
  const remove: Control = {
    name: 'mono.remove',
    description: 'Makes a Mono agent send a counter no longer that no consumer has chosen.',
    parameters: counterParameters,
    tenants,
    prepare(args, { identity }) {
      const agent = agentOf(hub, args, identity)
      const called = calledOf(args)
      return () => {
        const series = agent.find(called)
        if (series?.isAsked) return asked(agent, called)
        if (series?.header === undefined) return failed(`${agent.name} does not send ${wordsFor(called)}`)
        if (series.isWanted) return failed(`consumers have chosen ${series.name}: it ends with the last STOP`)
        return answered(clock, agent, (done) => {
          agent.remove(series, (status) => done(status === undefined ? undefined : resultOf(agent, called, status)))
        })
      }
    },
  }
  const goodBye: Control = {
    name: 'mono.goodbye',
    description: 'Tells a Mono agent to go; after 10 s the connection is ended.',
    parameters: [agentParameter],
    tenants,
    prepare(args, { identity }) {
      const agent = agentOf(hub, args, identity)
      return () => {
        agent.goodBye()
        return ok(`${agent.name} was told to go`)
      }
    },
  }
  return [list, add, remove, goodBye]
}

/** Throws StatusError: another tenant's is as absent. */
function agentOf(hub: Pick<Hub, 'sensors'>, args: ControlArguments, identity: Identity): MonoAgent {
  const name = args.get('agent') as string
  const sensors = hub.sensors.filter((sensor): sensor is MonoSensor => sensor instanceof MonoSensor)
  const theirs = sensors.filter(({ owner }) => mayRead(identity, owner))
  const agent = theirs.map((sensor) => sensor.agent(name)).find((found) => found !== undefined)
  if (agent === undefined) {
    const names = theirs.flatMap((sensor) => [...sensor.agents()]).slice(0, 5)
    const there = names.length === 0 ? 'none is connected' : `there are ${names.join(', ')}`
    throw new StatusError('INVALID_ARGUMENT', `no Mono agent ${name}: ${there}`)
  }
  if (agent.isFile) throw new StatusError('INVALID_ARGUMENT', `${name} is a file: it cannot be asked`)
  if (!agent.isOpen) throw new StatusError('BUSY', `${name} has not answered what it was asked before`)
  return agent
}

function calledOf(args: ControlArguments): MonoName {
  return { category: args.get('category') as string, name: args.get('counter') as string }
}

function wordsFor({ category, name }: MonoName): string {
  return `${category}: ${name}`
}

/** Two questions about one counter at once would be answered for each other. */
function asked({ name }: MonoAgent, called: MonoName): ControlResult {
  return failed(`${name} is being asked about ${wordsFor(called)}`)
}

function resultOf(agent: MonoAgent, called: MonoName, status: MonoStatus): ControlResult {
  const series = agent.find(called)
  const value = { type: BasicType.STRING, value: series?.name ?? '' } as const
  if (status === MonoStatus.OK) return ok(`${agent.name}: done`, value)
  if (status === MonoStatus.NOTFOUND) return failed(`${agent.name} has no ${wordsFor(called)}`)
  if (status !== MonoStatus.EXISTING) return failed(`${agent.name} refused`)
  if (series?.header !== undefined) return ok(`${agent.name} sends ${wordsFor(called)} already`, value)
  return failed(`${agent.name} sends ${wordsFor(called)} already, and does not say under which index`)
}

/** ARRAY of REC {category, counter, metric; boolean sent}. */
function shown(agent: MonoAgent, counters: readonly MonoName[]): ControlResult {
  const records = new RecordList()
  for (const called of counters) {
    const series = agent.find(called)
    const isShown = records.add([
      { name: 'category', type: BasicType.STRING, value: called.category },
      { name: 'counter', type: BasicType.STRING, value: called.name },
      { name: 'metric', type: BasicType.STRING, value: series?.name ?? '' },
      { name: 'sent', type: BasicType.BOOLEAN, value: series?.header !== undefined },
    ])
    if (!isShown) break
  }
  return ok(`${counters.length} counters`, records.value())
}

/** `ask` gives undefined when the connection ended. */
function answered(
  clock: Pick<Clock, 'setTimeout' | 'clear'>,
  { name, isOpen }: MonoAgent,
  ask: (done: (result: ControlResult | undefined) => void) => void,
): Promise<ControlResult> | ControlResult {
  if (!isOpen) return failed(`${name} went away`)
  return new Promise((resolve) => {
    const timer = clock.setTimeout(() => {
      resolve({ outcome: 'timeout', detail: `${name} did not answer within ${ANSWER_MS / 1000} s`, value: VOID })
    }, ANSWER_MS)
    ask((result) => {
      clock.clear(timer)
      resolve(result ?? failed(`${name} went away`))
    })
  })
}
