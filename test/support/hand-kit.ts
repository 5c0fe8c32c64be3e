/** The kit of a wing without a server around it: values are always taken, nothing is stored, and there are no peers. */
import { QUERY_LIMITS } from '../../promql/evaluate/budget.ts'
import type { Quota } from '../../server/kernel/accounts/quotas.ts'
import { Quotas } from '../../server/kernel/accounts/quotas.ts'
import { Rights } from '../../server/kernel/accounts/rights.ts'
import { Rules } from '../../server/kernel/accounts/rules.ts'
import { Inlets } from '../../server/kernel/channels/inlets.ts'
import type { Clock } from '../../server/kernel/core/clock.ts'
import { FairWork } from '../../server/kernel/core/fair-work.ts'
import { ForeignCode } from '../../server/kernel/core/faults.ts'
import { createLogger } from '../../server/kernel/core/log.ts'
import type { Hub } from '../../server/kernel/metrics/hub.ts'
import { EvaluationWatch } from '../../server/kit/expressions.ts'
import { FeedTurns } from '../../server/kit/io/pacer.ts'
import { type MadeKit, makeKit } from '../../server/kit/kit.ts'

const NO_LIMITS: Quota = {
  connections: 0,
  channels: 0,
  queuedBytes: 0,
  instances: 0,
  valuesPerSecond: 0,
  controlsPerMinute: 0,
  auditBytesPerDay: 0,
  dialsPerMinute: 0,
  historyBytes: 0,
  historySeries: 0,
  rules: 0,
  notifiers: 0,
  ruleSecondsPerHour: 0,
  series: 0,
}

export function handKit(hub: Hub, clock: Clock): MadeKit {
  const journal = { touch() {}, change() {}, whenStored: () => Promise.resolve() }
  const intake = { refusal: undefined, isClosed: false, begin: () => ({ stored: () => Promise.resolve(undefined) }) }
  const unused = (): never => {
    throw new Error('there is no server')
  }
  return makeKit({
    self: {
      name: 'n1',
      dataDir: '.',
      id: 'i1',
      node: undefined,
      sharedHistory: undefined,
      software: 'cinnabar/test',
      configDirectory: '.',
      keyFor: () => new Uint8Array(32),
    },
    clock,
    turnClock: clock,
    log: createLogger('silent'),
    hub,
    quotas: new Quotas(() => NO_LIMITS, clock),
    openFiles: { enter: () => true },
    work: new FairWork(clock),
    inlets: new Inlets(),
    rights: new Rights(new Rules([], 1, () => {})),
    foreign: new ForeignCode(),
    intake,
    pacing: {
      clock,
      turns: new FeedTurns(clock),
      faults: hub.faults,
      behind: () => false,
      journal: { wait: ({ durable }) => durable() },
    },
    controls: { add() {}, follow() {}, reach() {} },
    expressions: {
      problem: 'there is no history',
      limits: QUERY_LIMITS,
      caughtUp: unused,
      recurring: unused,
      stored: { journal, alerts: [], groups: [], files: [] },
      watch: new EvaluationWatch(),
    },
    peer: {
      notice() {},
      delivery: {
        offer() {},
        channelOf: unused,
        haltOthers: () => [],
        endOwn: unused,
        permits: unused,
        addressFor: unused,
      },
      stored: {
        journal,
        upstreams: [],
        upstreamBindings: [],
        qmfAgent: undefined,
        notifyGroups: [],
        notifyAlerts: [],
        notifications: [],
        silences: [],
        notifiers: [],
        alerts: () => [],
      },
      view: {
        tenants: () => [],
        stats: unused,
        channels: () => [],
        sensors: hub.sensors,
        use: unused,
        recent: { metric: unused as never, check: unused, show: unused, leaveOut: unused },
        readerOf: unused,
        mayExecute: unused,
        waiting: () => [],
        readRights: unused,
      },
      producers: {
        nodes: undefined,
        connect: undefined,
        callers: { tls: undefined, admission: { enter: unused, authenticated: unused, leave: unused } },
        intake,
        fences: hub.fences,
        changed: unused,
      },
    },
  })
}
