/** The kit as wings get it: how large its parts are, why values cannot be taken, and what ends with its doors. */
import { expect, it } from 'vitest'
import { Quotas } from '../../../server/kernel/accounts/quotas.ts'
import { Inlets } from '../../../server/kernel/channels/inlets.ts'
import { FairWork, type Steps } from '../../../server/kernel/core/fair-work.ts'
import { Hub } from '../../../server/kernel/metrics/hub.ts'
import type { ListeningSensor } from '../../../server/kernel/metrics/metric.ts'
import type { OwnChannel } from '../../../server/kit/delivery.ts'
import type { Kit } from '../../../server/kit/kit.ts'
import type { ShownChannel } from '../../../server/kit/peer.ts'
import { makePoll } from '../../../server/kit/poll.ts'
import type { DeliveredChannel } from '../../../server/kit/push.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { handKit } from '../../support/hand-kit.ts'

type Producers = Kit['peer']['producers']
type Part = 'feed' | 'door' | 'poll' | 'peer' | 'controls'

/** Every member of every part: with another one it does not compile. */
const MEMBERS: { readonly [P in Part]: { readonly [Member in keyof Kit[P]]: true } } = {
  feed: { add: true, born: true, emit: true, emitEncoded: true, emitRun: true, died: true },
  door: { family: true, http: true, datagrams: true, streams: true, file: true, listener: true },
  poll: { work: true, run: true, failed: true, meterOf: true, refusal: true, demand: true },
  peer: { pacer: true, notice: true, delivery: true, stored: true, view: true, producers: true },
  controls: { add: true, follow: true, reach: true },
}

const JOINING: { readonly [Member in keyof Producers]: true } = {
  nodes: true,
  connect: true,
  callers: true,
  intake: true,
  fences: true,
  changed: true,
}

/** What wings know of channels. */
const SHOWN: { readonly [Member in keyof ShownChannel]: true } = {
  id: true,
  owner: true,
  state: true,
  deleted: true,
  row: true,
  queue: true,
}
const DELIVERED: { readonly [Member in keyof DeliveredChannel]: true } = {
  id: true,
  label: true,
  owner: true,
  bindings: true,
  queue: true,
  outbox: true,
}
const OWN: { readonly [Member in keyof OwnChannel]: true } = {
  delivered: true,
  state: true,
  onChange: true,
  bind: true,
  attach: true,
  detach: true,
}
const CHANNELS = { 'channel that is shown': SHOWN, 'channel that is delivered': DELIVERED, 'channel of a wing': OWN }

it.each(Object.entries({ ...MEMBERS, 'peer.producers': JOINING, ...CHANNELS }))(
  '%s: at most six members',
  (_part, members) => {
    expect(Object.keys(members).length).toBeLessThanOrEqual(6)
  },
)

it('nothing stands between a sensor and the hub', () => {
  const clock = new FakeClock()
  const hub = new Hub(clock)
  expect(handKit(hub, clock).kit.feed).toBe(hub)
})

it('values cannot be taken while their sensor is fenced, the store cannot take them, or the quota is reached', () => {
  const clock = new FakeClock()
  const hub = new Hub(clock)
  const full = { reason: 'full', detail: 'the disk is full', retryAfterS: 30 } as const
  const intake: { refusal: typeof full | undefined } = { refusal: undefined }
  const quotas = new Quotas(() => {
    throw new Error('no quota is asked for')
  }, clock)
  const poll = makePoll({ hub, intake, work: new FairWork(clock), inlets: new Inlets(), quotas })
  const meter = { waitMs: 0 }
  const sensor = {
    polled: false,
    family: 'a.',
    owner: 'producer',
    meter,
    metrics: () => [],
    metric: () => undefined,
    series: () => [],
    last: () => undefined,
  } satisfies ListeningSensor & { readonly meter: { waitMs: number } }
  hub.add(sensor)
  expect(poll.refusal(sensor)).toBeUndefined()
  meter.waitMs = 250
  expect(poll.refusal(sensor)).toMatchObject({ reason: 'quota', waitMs: 250 })
  intake.refusal = full
  expect(poll.refusal(sensor)).toEqual({ reason: 'full', detail: 'the disk is full', waitMs: 30_000 })
  void hub.fence(sensor)
  expect(poll.refusal(sensor)).toMatchObject({ reason: 'fenced', detail: 'an operator has fenced a.*' })
})

it('what a wing has begun besides its doors ends with them, once, and in the order in which it began', async () => {
  const clock = new FakeClock()
  const { kit, doors } = handKit(new Hub(clock), clock)
  const closed: string[] = []
  const close = (name: string) => ({ close: async () => void closed.push(name) })
  doors.closeWith(close('links'))
  const address = { host: '127.0.0.1', port: 7 }
  kit.door.listener({ key: 'a.listen', use: 'a', transport: 'tcp' }, { address, ...close('listener') })
  expect(doors.addresses).toEqual([{ key: 'a.listen', use: 'a', transport: 'tcp', address }])
  await doors.close()
  await doors.close()
  expect(closed).toEqual(['links', 'listener'])
})

const none = (): never => {
  throw new Error('no quota is asked for')
}

it('inlets are open during each step of work, and during no pause', () => {
  const clock = new FakeClock()
  const inlets = new Inlets()
  const open: string[] = []
  const inlet = { close: () => open.push('closed') }
  function* steps(): Steps<string> {
    for (const name of ['a', 'b']) {
      open.push(`${name} ${inlets.keep(inlet)}`)
      yield
    }
    return 'done'
  }
  const intake = { refusal: undefined }
  const quotas = new Quotas(none, clock)
  const poll = makePoll({ hub: new Hub(clock), intake, work: new FairWork(clock), inlets, quotas })
  expect(poll.work({ tenant: 'acme' }, steps())).toBe('done')
  expect(open).toEqual(['a true', 'closed', 'b true', 'closed'])
  expect(inlets.keep(inlet)).toBe(false)
})

it('inlets are closed after a step that throws', () => {
  const clock = new FakeClock()
  const inlets = new Inlets()
  // biome-ignore lint/correctness/useYield: the first step throws.
  function* steps(): Steps<void> {
    throw new Error('a step')
  }
  const quotas = new Quotas(none, clock)
  const poll = makePoll({
    hub: new Hub(clock),
    intake: { refusal: undefined },
    work: new FairWork(clock),
    inlets,
    quotas,
  })
  expect(() => poll.work({ tenant: 'acme' }, steps())).toThrow('a step')
  expect(inlets.keep({ close() {} })).toBe(false)
})
