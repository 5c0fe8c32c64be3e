/** Qpid brokers, the server as a process of its own, and consumers: the command line, and fifty brokers at once. */

import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { type Consumer, connect, plainOf } from '../../client/index.ts'
import { missingAtLast } from '../rig/patience.ts'
import { freePort } from '../support/free-port.ts'
import { SERVER_PROGRAM } from '../support/program.ts'
import { ScriptedBroker } from '../support/qmf/broker.ts'
import { message } from '../support/qmf/recording.ts'
import { str16, u32 } from '../support/qmf/wire.ts'
import { PASSWORD, ServerProcess } from '../support/server-process.ts'

/** Shorter than the limit of a test, which could not say what has not come; it is no measure of speed. */
const PATIENCE = { timeout: 45_000, interval: 20 }
/** Half a minute without anything new. */
const IDLE = { looks: 300 }
const PACKAGE = 'org.apache.qpid.broker'
const BROKERS = 50
/** Of the recording: those of its two queues while somebody looks, and what a queue has. */
const [SAMPLES, STATISTICS] = [7, 47]
/** Statistics and properties of the two, which whoever binds them is given at once. */
const KNOWN = 108
const ROUNDS = 4
/** Of what is played. */
const LENGTH_MS = 20_000
const MEBIBYTE = 1 << 20
/** 40 to 70 were seen, of 215 without what brokers tell. */
const MOST_MEBIBYTES = 128

let server: ServerProcess
let brokers: ScriptedBroker[]
let consumer: Consumer

async function start(count: number, prepare: (broker: ScriptedBroker) => void = () => {}): Promise<void> {
  brokers = await Promise.all(Array.from({ length: count }, () => ScriptedBroker.listen()))
  for (const broker of brokers) prepare(broker)
  const tables = brokers.map(
    ({ port }, n) => `[[qmf]]\nname = "b${n}"\nurl = "amqp://127.0.0.1:${port}"\nversion = 1\n`,
  )
  server = new ServerProcess(tables.join(''), { tcp: await freePort() })
  await server.start()
  consumer = await connect(`tcp://127.0.0.1:${server.tcpPort}`, { identity: 'admin', password: PASSWORD })
  void consumer.run().catch(() => {})
}

beforeEach(() => {
  brokers = []
})
afterEach(async () => {
  await consumer.close()
  await server.remove()
  await Promise.all(brokers.map((broker) => broker.close()))
})

async function cinnabar(...args: readonly string[]): Promise<string> {
  const program = [SERVER_PROGRAM, ...args, '--config', server.config]
  return (await promisify(execFile)(process.execPath, program)).stdout
}

/** Waits until everything of every broker is known. */
async function ready(): Promise<void> {
  const missing = await missingAtLast(async () => {
    const up = plainOf((await consumer.query('qmf.broker.up')).value) as readonly { readonly value: boolean }[]
    return brokers.length - up.filter(({ value }) => value).length
  }, IDLE)
  expect(missing, 'brokers that are not up').toBe(0)
}

it('the command line lists the metrics of a broker and calls its methods', async () => {
  await start(1)
  await ready()
  const metrics = await cinnabar('metrics', 'qmf.*queue*')
  expect(metrics).toMatch(new RegExp(`^qmf.${PACKAGE}.queue.msgDepth +continuous +uint64 +message`, 'm'))
  expect(metrics).toMatch(new RegExp(`^qmf.${PACKAGE}.queueDeclare +event +rec`, 'm'))
  expect(metrics).not.toContain('exchange.')
  const echo = `qmf.${PACKAGE}.broker.echo`
  expect(await cinnabar('exec', echo, 'sequence=1', 'body=hello cinnabar')).toBe(
    'ok: OK\nsequence=1 body=hello cinnabar\n',
  )
  // Others were not recorded: what is given comes back as it is.
  ;(brokers[0] as ScriptedBroker).answers = (bodies, { text, sequence, rest }) => {
    if (text !== 'M echo') return bodies
    return [message('m', sequence, u32(0), str16('OK'), rest.subarray(rest.indexOf('echo') + 4))]
  }
  expect(await cinnabar('exec', echo, 'sequence=1', 'body=hi')).toBe('ok: OK\nsequence=1 body=hi\n')
})

/** Bytes that the process has in memory. */
function resident(): number {
  const status = readFileSync(`/proc/${server.pid}/status`, 'utf8')
  return Number(/VmRSS:\s*(\d+)/.exec(status)?.[1]) * 1024
}

it('fifty brokers at once cost little memory, and every value of each comes', { timeout: 180_000 }, async () => {
  await start(BROKERS, (broker) => {
    broker.instead = () => true
  })
  await vi.waitFor(() => {
    for (const { connections } of brokers) expect(connections).toBe(1)
  }, PATIENCE)
  const before = resident()
  for (const broker of brokers) {
    broker.instead = () => false
    broker.kick()
  }
  await ready()
  let values = 0
  await consumer.follow(`qmf.${PACKAGE}.queue.*`, { broker: '*', object: '*' }, () => {
    values++
  })
  await vi.waitFor(() => {
    for (const { bound } of brokers) expect(bound).toContain(`console.obj.*.*.${PACKAGE}.queue`)
  }, PATIENCE)
  /** Waits as long as values come. */
  const come = async (count: number): Promise<void> => {
    expect(await missingAtLast(() => count - values, IDLE), `values that do not come, of ${count}`).toBe(0)
  }
  await come(BROKERS * KNOWN)
  values = 0
  for (let round = 1; round <= ROUNDS; round++) {
    for (const broker of brokers) {
      broker.ms = 0
      broker.play(undefined, { laterMs: round * LENGTH_MS })
    }
    await come(round * BROKERS * SAMPLES * STATISTICS)
  }
  const grown = (resident() - before) / MEBIBYTE
  expect(grown, `${grown} MiB for ${BROKERS} brokers`).toBeLessThan(MOST_MEBIBYTES)
})
