/** What a node says of itself, and what it makes of what others say that does not fit to its configuration. */
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { type Alive, decodeAlive, encodeAlive } from '../../../server/cluster/alive.ts'
import { AwakeTime, Members } from '../../../server/cluster/members.ts'
import type { ClusterNotice } from '../../../server/cluster/node-options.ts'
import { Presence } from '../../../server/cluster/presence.ts'
import { Reports } from '../../../server/cluster/reports.ts'
import { NOWHERE } from '../../../storage/sqlite/log-places.ts'

const NODES = [
  { name: 'n1', host: '10.0.0.1', port: 7654 },
  { name: 'n2', host: '2001:db8::2', port: 7654 },
]
const OWN = {
  role: 'follower',
  epoch: 0,
  since: 0,
  place: NOWHERE,
  lagMs: 0,
  obstacle: undefined,
  leaves: false,
} as const

/** The node n1, which hears what the test says. */
function present() {
  const time = { now: 0 }
  const logged: string[] = []
  const log = pino({ base: null }, { write: (line: string) => void logged.push(JSON.parse(line).msg) })
  const sent: Uint8Array[] = []
  let receive: (bytes: Uint8Array) => void = () => {}
  const reports = new Reports(log, 'n1')
  const members = new Members({ node: 'n1', nodes: NODES, leaseMs: 1_000, now: () => 0 })
  const presence = new Presence({
    config: { name: 'main', node: 'n1', nodes: NODES, leaseMs: 1_000 },
    run: 'r1',
    configuration: () => 'c',
    version: 'v',
    format: 1,
    log,
    bus: {
      open(taken) {
        receive = taken
      },
      publish: (bytes) => void sent.push(bytes),
      close: async () => {},
    },
    awake: new AwakeTime(() => time.now, 100),
    members,
    reports,
    own: () => OWN,
    onHeard() {},
  })
  presence.open()
  const hear = (node: string, more: Partial<Alive> = {}): void => {
    const address = '[2001:db8::2]:7654'
    receive(
      encodeAlive({
        ...OWN,
        node,
        run: 'r',
        address,
        format: 1,
        version: 'v',
        configuration: 'c',
        answers: true,
        ...more,
      }),
    )
  }
  return { time, presence, members, reports, logged, sent, hear, receive: (bytes: Uint8Array) => receive(bytes) }
}

test('a node says where it is reached, as its configuration has it', () => {
  const { presence, sent } = present()
  presence.publish()
  expect(sent.map(decodeAlive)).toMatchObject([{ node: 'n1', address: '10.0.0.1:7654' }])
})

test('an address that is not the configured one is refused, and reported once, also to consumers', () => {
  const { members, reports, logged, hear } = present()
  hear('n2')
  expect(logged).toEqual([])
  const leads = { address: '203.0.113.9:7654', role: 'leader', epoch: 3 } as const
  hear('n2', leads)
  hear('n2', leads)
  const warning =
    'node n2 says that it is reached at 203.0.113.9:7654, and that is refused: by `cluster.nodes` of this node its address ' +
    'is [2001:db8::2]:7654. Correct one of them'
  expect(logged.filter((line) => line === warning)).toHaveLength(1)
  // It leads all the same, and where it is reached is what is configured.
  expect(members.leader?.node).toBe('n2')
  expect(members.addressOf('n2')?.host).toBe('2001:db8::2')
  const notices: ClusterNotice[] = []
  const leading = { notify: (notice: ClusterNotice) => void notices.push(notice), stop: never, depose: never }
  reports.deliverTo(leading)
  hear('n2', { address: 'elsewhere:1' })
  reports.deliverTo(undefined)
  hear('n2', { address: 'elsewhere:2' })
  expect(notices.map(({ severity, detail }) => [severity, detail.includes('refused')])).toEqual([
    ['warning', true],
    ['warning', true],
  ])
})

test('a node that is not configured is reported once, and has no address', () => {
  const { members, logged, hear } = present()
  hear('n9', { role: 'leader', epoch: 3 })
  hear('n9')
  expect(logged.filter((line) => line.includes('n9 is heard, and `cluster.nodes` does not name it'))).toHaveLength(1)
  expect(members.addressOf('n9')).toBeUndefined()
})

test('a flood of messages is cut off and counted, while the node still hears itself, and the next beat begins anew', () => {
  const { time, presence, members, hear, sent, receive } = present()
  presence.publish()
  for (let count = 0; count < 1_100; count++) hear('n2', { lagMs: count })
  expect(presence.ignoredMessages).toBe(1_100 - 1_024)
  expect(members.present()).toMatchObject([{ lagMs: 1_023 }])
  time.now = 90
  expect(presence.cutOffMs).toBe(90)
  receive(sent[0] as Uint8Array)
  expect(presence.cutOffMs).toBe(0)
  presence.publish()
  hear('n2', { lagMs: 5 })
  expect(members.present()).toMatchObject([{ lagMs: 5 }])
  receive(new Uint8Array(5_000))
  receive(Buffer.from('{'))
  expect(presence.ignoredMessages).toBe(1_100 - 1_024 + 2)
  // The leader is still heard, unless the flood is of itself.
  const leads = { run: 'led-by-n2', role: 'leader', epoch: 3 } as const
  hear('n2', leads)
  for (let count = 0; count < 1_100; count++) hear('n9')
  hear('n2', { ...leads, epoch: 4 })
  expect(members.leader?.epoch).toBe(4)
  for (let count = 0; count < 1_100; count++) hear('n2', { ...leads, epoch: 5 + count })
  expect(members.leader?.epoch).toBe(5 + 1_022)
  presence.publish()
  hear('n2', { ...leads, epoch: 9_000 })
  expect(members.leader?.epoch).toBe(9_000)
})

async function never(): Promise<void> {}
