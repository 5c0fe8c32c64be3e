/** Values of the metrics of the producer that say something only where there is a history. */
import { LabelSet } from '../../promql/label-set.ts'
import { XdrWriter } from '../../protocol/bytes/writer.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import { writeValueMessage } from '../../protocol/monitor/message.ts'
import type { Field, Value } from '../../protocol/monitor/value.ts'
import { QueryOutcomes, queriesSensor } from '../../server/edge/query/outcomes.ts'
import { QueryProblem } from '../../server/edge/query/problems.ts'
import { problemRecord, resultRecords } from '../../server/edge/query/records.ts'
import type { Clock } from '../../server/kernel/core/clock.ts'
import { finish } from '../../server/kernel/core/fair-work.ts'
import { createLogger } from '../../server/kernel/core/log.ts'
import { EvaluationWatch } from '../../server/kit/expressions.ts'
import { AlertFigures } from '../../server/wings/alerts/figures.ts'
import { RulesSensor } from '../../server/wings/alerts/rules-sensor.ts'
import { HistorySensor } from '../../server/wings/history/figures.ts'
import type { HistorySelection } from '../../server/wings/history/messages.ts'
import { SelectSensor } from '../../server/wings/history/select.ts'
import { ActiveAlerts } from '../../server/wings/notify/active-alerts.ts'
import { noneTold } from '../../server/wings/notify/counts.ts'
import { NotifierFigures } from '../../server/wings/notify/figures.ts'
import { NotificationLog } from '../../server/wings/notify/log.ts'
import { Silences } from '../../server/wings/notify/silences.ts'
import type { ValueMessage } from '../support/seat.ts'

const BOSS = { userId: 1, tenant: 'default', name: 'boss', role: 'admin' }

/** As it is where something is recorded. */
export function historyValue(clock: Clock): ValueMessage {
  const counts = { samples: 1, unsupported: 0, repeated: 0, lost: 0, refused: 0, ahead: 0 }
  const ofServer = { ...counts, series: 1, stored: 1, bytes: 1, oldestMs: 1 }
  const none = { merges: 0, tooOld: 0, late: 0, daysOverBytes: 0, damagedPages: 0 }
  const figures = { tenants: new Map([['', ofServer]]), bytes: 1, ...none }
  const sensor = new HistorySensor({ figures, waiting: () => 0 }, clock)
  const [metric] = sensor.metrics()
  const { value } = sensor.measure(metric as never, new Map(), BOSS)
  return messageOf(value)
}

/** As it is where there are rules. */
export function alertsValue(clock: Clock): ValueMessage {
  const counts = { evaluations: 1, failures: 0, transitions: 0, missed: 0, workedMs: 0, setBack: 0 }
  const sensor = new AlertFigures(
    [{ tenant: 'default', groups: [], lagMs: 0, counts }],
    () => ({ files: [], refused: 0, usedUp: 0 }),
    clock,
  )
  return messageOf(sensor.measure(undefined, undefined, BOSS).value)
}

/** As they are where a rule has an alert. */
export function alertValues(clock: Clock): ReadonlyMap<string, ValueMessage> {
  const labels = { alertname: 'Down' }
  const annotations = { summary: 'down' }
  const rule = {
    kind: 'alert',
    name: 'Down',
    query: 'up < 1',
    threshold: { expr: 'up', value: 1 },
    labels,
    annotations,
    forMs: 0,
    keepFiringForMs: 0,
    alerts: [],
    health: 'ok',
    problem: '',
    tookMs: 1,
    evaluatedMs: 1,
  } as const
  const group = { name: 'g', file: 'f.yml', intervalMs: 1, limit: 0, tookMs: 1, evaluatedMs: 1 }
  const rules = new RulesSensor(
    {
      *groupsFor() {
        yield
        return []
      },
      *rulesFor(_reader, _from, take) {
        yield
        take(rule, group, 1)
      },
    },
    clock,
  )
  const row = {
    rule: '["default","f.yml","g","Down",0]',
    labels: JSON.stringify(Object.entries(labels)),
    annotations: JSON.stringify(Object.entries(annotations)),
    state: 'firing',
    value: '1',
    active: 1,
    fired: 1,
    kept: undefined,
    resolved: undefined,
    missing: undefined,
  } as const
  const silences = new Silences([], { change() {} })
  const view = { readRights: () => ({ mayReadRemembered: () => true }) as never }
  const active = new ActiveAlerts(
    { running: [], silences, watch: new EvaluationWatch(), alerts: () => [row], view },
    clock,
  )
  return new Map([
    ['producer.rules', messageOf(finish(rules.measure(undefined, new Map(), BOSS)).value)],
    ['producer.alerts.active', messageOf(finish(active.measure(undefined, new Map(), BOSS)).value)],
  ])
}

/** As they are where somebody is told of alerts, and of one nobody is. */
export function notifierValues(clock: Clock): ReadonlyMap<string, ValueMessage> {
  const journal = { change() {} }
  const log = new NotificationLog([], journal)
  const notification = { key: 'k', groupLabels: [['alertname', 'Down']], atMs: 1, alerts: [], truncated: 0 } as const
  log.add('default/n', notification, { outcome: 'delivered', detail: '200', attempts: 1 }, 1)
  const silences = new Silences([], journal)
  const about = { tenant: 'default', kind: 'silence', matchers: '["a=b"]', author: 'boss', comment: '' } as const
  silences.add({ ...about, begins: 1, ends: Number.MAX_SAFE_INTEGER / 1_000 })
  const notifier = {
    table: { tenant: 'default', name: 'n' },
    counts: noneTold(),
    groups: undefined,
    problem: '',
    failingSinceMs: undefined,
  }
  const shown = { running: [notifier], log, silences, tenants: () => ['default'] }
  const sensor = new NotifierFigures(shown, clock)
  const values = [...sensor.metrics()].map((metric) => messageOf(finish(sensor.measure(metric, new Map(), BOSS)).value))
  return new Map([...sensor.metrics()].map(({ name }, index) => [name, values[index] as ValueMessage]))
}

export function queriesValue(clock: Clock): ValueMessage {
  const outcomes = new QueryOutcomes({ log: createLogger('silent'), clock, slowMs: () => 0 })
  const times = { waitedMs: 0, tookMs: 0 }
  outcomes.ended({ reader: BOSS, path: '/', given: () => new URLSearchParams(), outcome: 'served', ...times })
  const sensor = queriesSensor(outcomes, clock)
  const [metric] = sensor.metrics()
  return messageOf((sensor.measure(metric as never, new Map(), BOSS) as { value: Value }).value)
}

/** What is answered to expressions: a string, a series, and what is wrong with one. */
export function expressionValues(): ValueMessage[] {
  const about = { warnings: ['w'], infos: ['i'], samples: 1, series: 1, peakPoints: 1 }
  const samples = [
    {
      labels: LabelSet.of([
        ['__name__', 'a'],
        ['host', 'h'],
      ]),
      value: 1,
    },
  ]
  const loss = { tenant: 'default', metric: 'test.a', fromMs: 1, toMs: 2, count: 3, reason: 'overflow' }
  const all = [
    [...resultRecords({ ...about, data: { type: 'string', timeMs: 1, text: 'x' } }, 1, [])],
    [...resultRecords({ ...about, data: { type: 'vector', timeMs: 1, samples } }, 1, [loss])],
    [problemRecord(new QueryProblem('bad_data', 'x', { start: 0, end: 1 }), 'x')],
  ]
  return all.map((items) => messageOf({ type: BasicType.ARRAY, value: { element: BasicType.REC, items } }))
}

/** What is answered to whoever asks for labels: a text, and what is wrong with a selector. */
export function labelsValues(): ValueMessage[] {
  const problem = problemRecord(new QueryProblem('bad_data', 'x', { start: 0, end: 1 }), 'x')
  const all: Field[][] = [[{ name: 'text', type: BasicType.STRING, value: 'host' }], problem]
  return [messageOf({ type: BasicType.ARRAY, value: { element: BasicType.REC, items: all } })]
}

function messageOf(value: Value): ValueMessage {
  const writer = new XdrWriter()
  writeValueMessage(writer, { metric: 1, transaction: 0, time: 0, value })
  const frame = writer.bytes()
  return { kind: 'value', metric: 1, transaction: 0, time: 0, type: value.type, bytes: frame.subarray(4) } as never
}

/** What is stored, as it is answered to some arguments. */
export async function selectedValue(
  clock: Clock,
  more: readonly (readonly [string, bigint | boolean])[] = [],
): Promise<ValueMessage> {
  const one = { tenant: 'default', name: 'a', native: 'test.a', labels: [['host', 'h']] } as const
  const samples = { series: one, times: Float64Array.of(1), values: Float64Array.of(1) }
  const columns = ['ends', 'min', 'max', 'sum', 'count', 'first', 'firstTimes', 'last', 'lastTimes', 'resets']
  const windows = { stepMs: 300_000, ...Object.fromEntries(columns.map((name) => [name, Float64Array.of(1)])) } as never
  const kit = {
    clock,
    poll: { work: (_: unknown, steps: Generator) => finish(steps as never) },
    peer: { view: { tenants: () => ['default'], readRights: () => ({ mayReadRemembered: () => true }) } },
  }
  const reading = {
    async *select({ tenant, stepMs, withFamilies = false }: HistorySelection) {
      const family = withFamilies ? { name: 'a', type: 'gauge', help: 'A.', unit: '1' } : undefined
      if (tenant !== '') yield [{ ...samples, family, ...(stepMs !== undefined && { windows }) }]
    },
    losses: async () => [{ native: 'test.*', fromMs: 1, toMs: 2, count: 3, reason: 'overflow' }],
  }
  const sensor = new SelectSensor(kit as never, { reading, freshen: () => {} })
  const [metric] = sensor.metrics()
  const given = new Map<string, string | bigint | boolean>([['metric', 'test.a'], ...more])
  return messageOf((await sensor.measure(metric as never, given, BOSS)).value)
}
