/**
 * docs/sources/README.md#times: whatever the clocks of senders and of the server do, QUERY and `GET /metrics` show the newest
 * value of every source, except that a late one does not replace a newer one.
 */
import { createSocket } from 'node:dgram'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { encodeWriteRequest } from '../../../protocol/prometheus/write-request.ts'
import { finish } from '../../../server/kernel/core/fair-work.ts'
import { eventually } from '../../support/eventually.ts'
import { boundTo } from '../../support/producer.ts'
import { PublishingProducer, tokenFor } from '../../support/publisher.ts'
import { decoded } from '../../support/records.ts'
import { metadata, text } from './gmetric/fixture.ts'
import { COLLECTIONS, HELLO, le32, samplingAt } from './mono/fixture.ts'
import { ScriptedAgent } from './mono/scripted-agent.ts'
import { ScriptedTarget, scrapeTables } from './prometheus/scrape/scripted-target.ts'
import { stream } from './smon/fixture.ts'

const LOOPBACK = [{ address: '127.0.0.0', prefix: 8, family: 'ipv4' as const }]
const ANY = { host: '127.0.0.1', port: 0 }
const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

let server: PublishingProducer
let target: ScriptedTarget
let token: string
beforeEach(async () => {
  target = await ScriptedTarget.start()
  const statsd = { udp: ANY, tcp: undefined, tenant: 'default', allow: LOOPBACK, flushMs: 1_000, keepMs: DAY_MS }
  server = await PublishingProducer.start({
    config: {
      scrape: scrapeTables({ name: 'node', url: target.url }),
      statsd: [{ ...statsd, maxMetrics: 100 }],
      gmetric: { listen: ANY, listenNamed: true },
      // Each datagram comes from another port.
      smon: { udp: ANY, sources: [{ name: 's', address: '127.0.0.1', port: undefined }] },
      mono: { listeners: [{ key: 'mono.listen', listen: ANY, dialect: 'gist', agent: undefined }] },
    },
  })
  token = await tokenFor(server.root, 'root', 'COLLECT *')
})
afterEach(async () => {
  await server.stop()
  await target.stop()
})

const nowMs = () => server.producer.clock.wallMs()

async function post(path: string, body: Uint8Array | string, headers: Record<string, string>): Promise<void> {
  expect((await server.post(path, body, headers)).ok).toBe(true)
}

async function datagram(key: string, bytes: Uint8Array | string): Promise<void> {
  const socket = createSocket('udp4')
  const port = boundTo(server.producer.server, key)?.port ?? 0
  await new Promise((resolve) => socket.send(bytes, port, '127.0.0.1', resolve))
  socket.close()
}

/** The value that QUERY shows; `GET /metrics` has to show the same. */
async function shown(name: string): Promise<number | undefined> {
  const [row] = decoded(await server.root.query(`${name}*`)) as { value: number }[]
  const answer = await fetch(`${server.url}/metrics?metric=${name}`, { headers: { authorization: `Bearer ${token}` } })
  const line = (await answer.text()).split('\n').find((line) => /^\w/.test(line) && !line.startsWith('cinnabar'))
  expect(line === undefined ? undefined : Number(line.split(' ').at(-1))).toBe(row?.value)
  return row?.value
}

interface TimedSource {
  readonly name: string
  /** Sends a value with a time of its sender, milliseconds. */
  readonly send: (value: number, timeMs: number) => Promise<void>
}

const withTimes: readonly TimedSource[] = [
  {
    name: 'otlp.t',
    send(asInt, timeMs) {
      const point = { asInt, timeUnixNano: String(BigInt(timeMs) * 1_000_000n) }
      const metrics = [{ name: 't', gauge: { dataPoints: [point] } }]
      const body = JSON.stringify({ resourceMetrics: [{ scopeMetrics: [{ metrics }] }] })
      return post('/v1/metrics', body, { 'content-type': 'application/json' })
    },
  },
  {
    name: 'prometheus.t',
    send(value, timeMs) {
      const body = finish(encodeWriteRequest([{ name: 't', labels: [], samples: [{ value, timeMs }] }]))
      return post('/api/v1/write', body, { 'content-type': 'application/x-protobuf', 'content-encoding': 'snappy' })
    },
  },
  {
    name: 'prometheus.scraped',
    async send(value, timeMs) {
      target.text = `scraped ${value} ${timeMs}\n`
      // Who asks within a second is not answered anew.
      server.producer.clock.advance(1_000)
    },
  },
]

/** Those whose values get the time at which they came. */
const withoutTimes: readonly { readonly name: string; readonly send: (value: number) => Promise<void> }[] = [
  {
    name: 'prometheus.bare',
    async send(value) {
      target.text = `bare ${value}\n`
      server.producer.clock.advance(1_000)
    },
  },
  {
    name: 'statsd.t',
    async send(value) {
      const taken = async () => {
        const sensors = decoded(await server.root.query('producer.sensors')) as { name: string; counters: object }[]
        return sensors.find(({ name }) => name === 'statsd-feed/default')?.counters
      }
      const { lines } = (await taken()) as { lines: number }
      await datagram('statsd[0].udp', `t:${value}|g`)
      await eventually(async () => expect(await taken()).toMatchObject({ lines: lines + 1 }))
      server.producer.clock.advance(1_000)
      await server.producer.settle()
    },
  },
  {
    name: 'gmetric.t',
    async send(value) {
      await datagram('gmetric.listen', metadata('', 't', 'double'))
      await datagram('gmetric.listen', text('', 't', String(value)))
      await eventually(async () => {
        expect(decoded(await server.root.query('gmetric.t*'))).toMatchObject([{ value }])
      })
    },
  },
  {
    name: 'smon.aaaa',
    async send(value) {
      await datagram('smon.udp', stream('00 05', "'uaaaa'", `01 ${value.toString(16).padStart(2, '0')}`))
      await eventually(async () => {
        expect(decoded(await server.root.query('smon.aaaa*'))).toMatchObject([{ value }])
      })
    },
  },
]

/** .NET's ticks at 1 January 1970, each 100 ns. */
const TICKS_OF_1970 = 621_355_968_000_000_000n

describe.each(withTimes)('$name', ({ name, send }) => {
  it('a value of the future does not hide the next', async () => {
    await send(1, nowMs() + HOUR_MS)
    expect(await shown(name)).toBe(1)
    await send(2, nowMs())
    expect(await shown(name)).toBe(2)
  })

  it('a late value does not replace a newer one', async () => {
    await send(1, nowMs())
    expect(await shown(name)).toBe(1)
    await send(2, nowMs() - MINUTE_MS)
    expect(await shown(name)).toBe(1)
  })

  it('a sender whose clock was set back is shown again after a minute', async () => {
    await send(1, nowMs())
    expect(await shown(name)).toBe(1)
    server.producer.clock.advance(MINUTE_MS)
    await send(2, nowMs() - HOUR_MS)
    expect(await shown(name)).toBe(2)
    await send(3, nowMs() - HOUR_MS)
    expect(await shown(name)).toBe(3)
  })

  it("the server's clock may be set back by a day, and put right", async () => {
    await send(1, nowMs())
    expect(await shown(name)).toBe(1)
    server.producer.clock.jumpWall(-DAY_MS)
    await send(2, nowMs())
    expect(await shown(name)).toBe(2)
    await send(3, nowMs() + DAY_MS)
    await send(4, nowMs() + DAY_MS - 1)
    expect(await shown(name)).toBe(4)
    server.producer.clock.jumpWall(DAY_MS)
    await send(5, nowMs())
    expect(await shown(name)).toBe(5)
  })
})

describe.each(withoutTimes)('$name', ({ name, send }) => {
  it("the server's clock may be set back by a day, and put right", async () => {
    for (const [value, step] of [0, -DAY_MS, 0, DAY_MS, 0, HOUR_MS, -HOUR_MS].entries()) {
      server.producer.clock.jumpWall(step)
      await send(value)
      expect(await shown(name)).toBe(value)
    }
  })
})

it('mono: the last value is shown, whatever the clocks of the agent and of the server do', async () => {
  const agent = await ScriptedAgent.connect(boundTo(server.producer.server, 'mono.listen'))
  agent.say(HELLO)
  for (const [value, [ofAgent, ofServer]] of [
    [0, 0],
    [HOUR_MS, 0],
    [0, 0],
    [-DAY_MS, 0],
    [0, -DAY_MS],
    [0, 0],
    [HOUR_MS, DAY_MS],
    [0, 0],
  ].entries()) {
    server.producer.clock.jumpWall(ofServer as number)
    const ticks = TICKS_OF_1970 + BigInt(nowMs() + (ofAgent as number)) * 10_000n
    agent.say(samplingAt(ticks, [0, le32(value)]))
    await eventually(async () => {
      expect(decoded(await server.root.query(`${COLLECTIONS}*`))).toMatchObject([{ value }])
    })
    expect(await shown(COLLECTIONS)).toBe(value)
  }
  await agent.end()
})
