/**
 * EXECUTEs that wait for approval [MON 10.1]: `producer.approvals` lists them, `control.pending` has an event for each that begins to
 * wait and for each that ends. Both show those that the identity may decide about, and those that it has asked for itself.
 */
import { formatIdentity } from '../../../auth/identity.ts'
import type { Identity, Owner } from '../../../auth/permissions.ts'
import { XdrReader } from '../../../protocol/bytes/reader.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { type Field, readTyped, type Value } from '../../../protocol/monitor/value.ts'
import { type ApprovalEnd, mayKnow, type WaitingExecute } from '../controls/approvals.ts'
import type { Approving } from '../controls/approving.ts'
import type { Clock } from '../core/clock.ts'
import { RecordList } from '../metrics/measure.ts'
import type { Arguments, EventSensor, HeldQueue, Measurement, Metric, ResumePoint } from '../metrics/metric.ts'
import type { ProducerView } from './sensor.ts'

const { ARRAY, BOOLEAN, OPAQUE, REC, STRING, UINT32, UINT64 } = BasicType

/** EXECUTEs that wait, as far as they are shown. */
export type ShownApprovals = Pick<Approving, 'shownTo' | 'follow' | 'whenStored'>

export function approvalsView(approvals: ShownApprovals): ProducerView {
  return {
    metric: {
      name: 'producer.approvals',
      exposition: 'none',
      kind: 'continuous',
      type: ARRAY,
      unit: '',
      description:
        'EXECUTEs that wait for the approval of your role, and those of your own, in the order in which they were asked for.',
      parameters: [{ name: 'after', type: UINT64, description: 'Only those that were asked for after this time.' }],
    },
    *show(identity, args) {
      const after = Number((args.get('after') as bigint | undefined) ?? 0n)
      const list = new RecordList()
      for (const waiting of approvals.shownTo(identity)) {
        yield
        if (waiting.row.asked <= after) continue
        const own = { name: 'own', type: BOOLEAN, value: waiting.row.user === identity.userId } as const
        if (!list.add([...describe(waiting), own])) break
      }
      return list.value()
    },
  }
}

const pending: Metric = {
  name: 'control.pending',
  kind: 'event',
  type: REC,
  unit: '',
  description: 'An EXECUTE begins to wait for the approval of your role, or that ends; your own are shown, too.',
  parameters: [],
}

export class PendingControls implements EventSensor {
  readonly polled = 'event'
  readonly family = 'control.'
  readonly owner: Owner = 'producer'
  readonly #approvals: ShownApprovals
  readonly #clock: Pick<Clock, 'microseconds'>

  constructor(approvals: ShownApprovals, clock: Pick<Clock, 'microseconds'>) {
    this.#approvals = approvals
    this.#clock = clock
  }

  metrics(): Iterable<Metric> {
    return [pending]
  }

  metric(name: string): Metric | undefined {
    return name === pending.name ? pending : undefined
  }

  /**
   * A binding that is new begins with what waits already; one of before the start has had that. An event is sent when it is stored, with
   * what it is about: otherwise something could be approved for whoever reads this that after a crash waits as before.
   */
  subscribe(
    _metric: Metric,
    identity: Identity,
    listener: (event: Measurement) => void,
    _args: Arguments,
    place: ResumePoint,
    queue?: HeldQueue,
  ): () => void {
    const isNew = place.reached === undefined
    if (isNew) place.reach(this.#clock.microseconds())
    if (isNew) for (const waiting of this.#approvals.shownTo(identity)) this.#tell(waiting, undefined, listener)
    return this.#approvals.follow((waiting, end) => {
      if (!mayKnow(waiting, identity)) return
      const hold = queue?.holdBack()
      this.#tell(waiting, end, listener)
      if (hold !== undefined) void this.#approvals.whenStored().then(() => hold.release())
    })
  }

  #tell(waiting: WaitingExecute, end: ApprovalEnd | undefined, listener: (event: Measurement) => void): void {
    if (waiting.row.preview === undefined && end === undefined) return
    listener({ value: pendingValue(waiting, end), time: this.#clock.microseconds() })
  }
}

/** A value of `control.pending`: one begins to wait, or that has ended. */
export function pendingValue(waiting: WaitingExecute, end?: ApprovalEnd): Value {
  const state = { name: 'state', type: STRING, value: end?.state ?? 'waiting' } as const
  const by = end?.by === undefined ? '' : formatIdentity(end.by)
  const ended: Field[] = [
    { name: 'by', type: STRING, value: by },
    { name: 'reason', type: STRING, value: end?.reason ?? '' },
  ]
  return { type: REC, value: [state, ...describe(waiting), ...(end === undefined ? [] : ended)] }
}

function describe({ row, args, identity, rule }: WaitingExecute): Field[] {
  const { id, control, role, address, asked, timeout, digest, preview } = row
  const text = (name: string, value: string): Field => ({ name, type: STRING, value })
  return [
    text('id', id),
    text('control', control),
    { name: 'args', type: REC, value: args },
    text('asker', formatIdentity(identity)),
    text('address', address),
    text('role', role),
    text('rule', rule),
    { name: 'asked', type: UINT64, value: BigInt(asked) },
    { name: 'until', type: UINT64, value: BigInt(Math.round(asked + timeout * 1000)) },
    { name: 'result', type: UINT32, value: row.result },
    { name: 'digest', type: OPAQUE, value: digest },
    ...(preview === undefined ? [] : [{ name: 'dry_run', ...readTyped(new XdrReader(preview)) }]),
  ]
}
