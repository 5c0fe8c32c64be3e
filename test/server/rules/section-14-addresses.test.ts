import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { AllowList } from '../../../server/edge/outbound/allow-list.ts'
import { parseDestination } from '../../../server/edge/outbound/destination.ts'
import { args, command, status, str, type } from '../../support/bytes.ts'
import { times } from '../../support/long.ts'
import { TestProducer } from '../../support/producer.ts'
import type { Response, Seat } from '../../support/seat.ts'
import { Callee, failed, SECRET, until } from '../edge/outbound/callee.ts'
import { forbiddenHosts, noDestinations } from '../edge/outbound/spellings.ts'

const ROUNDS = times({ short: 200, long: 1_000 })
const SCHEMES = ['tcp', 'tls', 'ws', 'wss', 'gmetric'] as const
/** As much as can be allowed without a word about what is special. */
const OPEN = SCHEMES.flatMap((scheme) => [`${scheme}://*:*`, `${scheme}://0.0.0.0/0:*`, `${scheme}://[::/0]:*`])

/** Names of other people may have any address. */
let resolve: (name: string) => Promise<readonly string[]>
let canaries: Callee[]
let port: number
let producer: TestProducer
let boss: Seat

beforeAll(async () => {
  const canary = await Callee.listen('127.0.0.1')
  port = canary.port
  canaries = [canary]
  for (const address of ['127.0.0.2', '::1']) {
    // Not every machine has IPv6.
    await Callee.listen(address, port).then(
      (one) => canaries.push(one),
      () => {},
    )
  }
  producer = await TestProducer.start({
    config: { dial: { allow: OPEN }, quota: { dialsPerMinute: 0 } },
    resolve: (name) => resolve(name),
  })
  await producer.addUser('boss', { role: 'admin' })
  boss = await producer.seat('boss')
})
afterAll(async () => {
  await producer.stop()
  for (const canary of canaries) await canary.close()
})

const calls = () => canaries.map((canary) => canary.calls)
const untouched = () => canaries.map(() => 0)

function define(url: string): Promise<Response> {
  const list = url.startsWith('gmetric') ? args() : args(['secret', type.opaque, str(SECRET)])
  return boss.ask((seq) => command.defChannel(seq, url, list))
}

describe('an address that is special', () => {
  it('has more than 200 spellings here, each told from the others', () => {
    expect(new Set(forbiddenHosts).size).toBeGreaterThan(500)
  })

  it.each(SCHEMES)(
    'is not dialled by %s, however it is written, and all are refused with the same words',
    async (scheme) => {
      const refusals = new Set<string>()
      for (const host of forbiddenHosts) {
        const { status: outcome, detail } = await define(`${scheme}://${host}:${port}`)
        expect([host, outcome]).toEqual([host, status.PERMISSION_DENIED])
        refusals.add(detail)
      }
      expect([...refusals]).toEqual(['this destination may not be dialled'])
      await producer.settle()
      expect(calls()).toEqual(untouched())
    },
  )

  it('is refused with the words that are said of everything that no list has', async () => {
    const strict = await TestProducer.start()
    await strict.addUser('boss', { role: 'admin' })
    const seat = await strict.seat('boss')
    const list = args(['secret', type.opaque, str(SECRET)])
    for (const url of ['tcp://127.0.0.1:1', 'tcp://93.184.216.34:1', 'tcp://example.org:1']) {
      const { status: outcome, detail } = await seat.ask((seq) => command.defChannel(seq, url, list))
      expect([outcome, detail]).toEqual([status.PERMISSION_DENIED, 'this destination may not be dialled'])
    }
    await strict.stop()
  })

  it('is dialled if it is named: the canary sings', async () => {
    const canary = await Callee.listen('127.0.0.1')
    const named = await TestProducer.start({ config: { dial: { allow: [`tcp://127.0.0.0/8:${canary.port}`] } } })
    await named.addUser('boss', { role: 'admin' })
    const seat = await named.seat('boss')
    const list = args(['secret', type.opaque, str(SECRET)])
    await seat.ok((seq) => command.defChannel(seq, `tcp://0x7f.1:${canary.port}`, list))
    await canary.call()
    expect(canary.calls).toBe(1)
    await named.stop()
    await canary.close()
  })
})

describe('a text that is no destination', () => {
  it('is INVALID_ARGUMENT, and not repeated', async () => {
    for (const url of noDestinations(port)) {
      const { status: outcome, detail } = await define(url)
      expect([url, outcome]).toEqual([url, status.INVALID_ARGUMENT])
      expect(detail).not.toContain('127.0.0.1')
    }
    expect(calls()).toEqual(untouched())
  })
})

describe('a name', () => {
  const evil = [...new Set(forbiddenHosts.map((host) => parseDestination(`tcp://${host}:1`).host))]

  it.each(['localhost', 'LOCALHOST', 'localhost.', 'some.localhost', 'trap.example.org'])(
    '%s that means this machine is tried in vain, and is shown as waiting',
    async (name) => {
      resolve = async () => ['127.0.0.1']
      const [before, said] = [failed(producer), producer.logged.length]
      const { status: outcome, result } = await define(`tcp://${name}:${port}`)
      expect(outcome).toBe(status.OK)
      await until(() => failed(producer) > before)
      // Like any other that does not answer: only the operator's log says why.
      expect((await boss.ledger(result)).state).toBe('waiting')
      expect(producer.logged.slice(said).join('')).toContain('`dial.allow` does not permit')
      await boss.ok((seq) => command.delChannel(seq, result))
      expect(calls()).toEqual(untouched())
    },
  )

  it('that has one special address among others reaches none of them', async () => {
    const list = new AllowList(OPEN)
    const destination = parseDestination('tcp://mixed.example.org:1')
    expect(list.permitsAddress(destination, '93.184.216.34')).toBe(true)
    for (const address of evil) expect([address, list.permitsAddress(destination, address)]).toEqual([address, false])
  })
})

describe('a name server that lies', () => {
  it('reaches nothing in many rounds: each attempt asks once, and judges every address of the answer', async () => {
    const good = await Callee.listen('127.0.0.5', 0)
    const canary = await Callee.listen('127.0.0.1', good.port)
    let asked = 0
    const answers = [
      ['127.0.0.5'],
      ['127.0.0.1'],
      ['127.0.0.5', '127.0.0.1'],
      ['127.0.0.1', '127.0.0.5'],
      ['::ffff:127.0.0.1'],
    ]
    const liar = await TestProducer.start({
      config: {
        dial: { allow: ['tcp://*.example.org:*', `tcp://127.0.0.5:${good.port}`] },
        quota: { dialsPerMinute: 0 },
      },
      resolve: async () => answers[asked++ % answers.length] as string[],
    })
    await liar.addUser('boss', { role: 'admin' })
    const seat = await liar.seat('boss')
    const list = args(['secret', type.opaque, str(SECRET)])
    await seat.ok((seq) => command.defChannel(seq, `tcp://trap.example.org:${good.port}`, list))
    for (let round = 1; round <= ROUNDS; round++) {
      if (round % answers.length === 1) (await good.call()).destroy()
      await until(() => failed(liar) === round)
      while (asked === round && round < ROUNDS) liar.clock.advance(1000)
    }
    expect([asked, good.calls, canary.calls]).toEqual([ROUNDS, ROUNDS / answers.length, 0])
    await liar.stop()
    await good.close()
    await canary.close()
  })
})
