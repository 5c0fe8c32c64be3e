/**
 * Requests that publish values while the disk fills up: none is begun any more once it is full, those that had begun get a yes only
 * for what is stored, and everything that got one is there after a crash. Needs root on Linux: the disk is a tmpfs.
 */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join as path } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { PasswordHasher } from '../../auth/password.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import type { Intake } from '../../server/kernel/channels/intake.ts'
import { createLogger } from '../../server/kernel/core/log.ts'
import type { Sensor } from '../../server/kernel/metrics/metric.ts'
import { defaultConfig } from '../../server/start/config.ts'
import { type RunningServer, startServer } from '../../server/start/server.ts'
import { canMount } from '../rig/small-disk.ts'
import { command, join, str } from '../support/bytes.ts'
import { eventually } from '../support/eventually.ts'
import { RawPeer } from '../support/raw-peer.ts'
import { decoded } from '../support/records.ts'
import { Seat } from '../support/seat.ts'
import { PushSensor } from '../support/test-sensor.ts'

const DISK_MIB = 24
const PASSWORD = 'a password for tests'
/** Four of these are about a page of the database. */
const PADDING = 'x'.repeat(4_000)
const VALUES = 40

let directory = ''
let data = ''
let server: RunningServer
let push: PushSensor
beforeEach(async (context) => {
  if (!canMount()) context.skip('a small disk is mounted by root on Linux only: run the tests with sudo')
  directory = mkdtempSync(path(tmpdir(), 'full-disk-marks-'))
  data = path(directory, 'data')
  mkdirSync(data, { mode: 0o700 })
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MIB}m,mode=0700`, 'tmpfs', data], { stdio: 'pipe' })
  await start()
})
afterEach(async () => {
  if (!canMount()) return
  await server.stop()
  execFileSync('umount', [data])
  rmSync(directory, { recursive: true, force: true })
})

async function start(): Promise<void> {
  const base = defaultConfig()
  server = await startServer({
    config: {
      ...base,
      producer: { name: 'n1', dataDir: data },
      listen: { ...base.listen, tcp: { host: '127.0.0.1', port: 0 }, http: undefined },
      gmetric: { ...base.gmetric, listen: undefined, listenNamed: false },
      auth: { ...base.auth, scramIterations: 4096 },
      // The one tenant may fill the disk.
      quota: { ...base.quota, queuedBytes: 0 },
      // The thread of a server whose process does not end would keep its files.
      history: { ...base.history, keepMs: 0 },
    },
    hasher: new PasswordHasher({ rounds: 4 }),
    log: createLogger('fatal'),
    sensors: (hub) => {
      push = new PushSensor(hub)
    },
    adminPassword: PASSWORD,
  })
}

const intake = (): Intake => server.parts.producer.intake
const sensor = (): Sensor => server.parts.hub.sensors.find(({ family }) => family === 'test.') as Sensor
const soon = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

interface Request {
  readonly numbers: readonly number[]
  /** `yes`, or the reason of a refusal; undefined until it is answered. */
  answer: string | undefined
}

let next = 1
/** Begins a request; it is answered when `end` was called and its mark is judged. */
function begin(): { request: Request; take: () => void; end: () => void } {
  const taking = intake().begin(sensor())
  const numbers: number[] = []
  const request: Request = { numbers, answer: undefined }
  const take = (): void => {
    for (let count = 0; count < VALUES; count++) {
      numbers.push(next)
      push.push('test.a', { type: BasicType.STRING, value: `${next++} ${PADDING}` }, Date.now() * 1000)
    }
  }
  const end = (): void => {
    void taking.stored().then((refusal) => {
      request.answer = refusal?.reason ?? 'yes'
    })
  }
  return { request, take, end }
}

/** A consumer with a channel, which is made if there is none. */
async function consumer(channel?: number): Promise<Seat> {
  const socket = connect({ host: '127.0.0.1', port: server.tcp?.port as number })
  await once(socket, 'connect')
  const peer = new RawPeer(socket)
  await peer.until('caps')
  peer.send(command.auth(0xfff00000, 'password', join(str('admin'), str(PASSWORD))))
  const { result } = await peer.response(0xfff00000)
  const seat = new Seat(peer, result)
  await seat.setChannel(channel ?? (await seat.defChannel()))
  return seat
}

test('a yes is one for values that are there, however full the disk becomes meanwhile', {
  timeout: 120_000,
}, async () => {
  const first = await consumer()
  await first.follow('test.a')
  const { channel } = await first.ledger()
  first.peer.destroy()
  const requests: Request[] = []
  while (intake().refusal?.reason !== 'full') {
    if (intake().refusal === undefined) {
      const { request, take, end } = begin()
      requests.push(request)
      take()
      end()
    }
    await soon()
  }
  // One that began when there was room, and finds none for the rest.
  const late = begin()
  late.take()
  late.end()
  requests.push(late.request)
  await eventually(() => expect(late.request.answer).toMatch(/^(full|behind)$/))
  await eventually(() => expect(requests.filter(({ answer }) => answer === undefined)).toEqual([]))
  const promised = requests.filter(({ answer }) => answer === 'yes').flatMap(({ numbers }) => numbers)
  expect(promised.length).toBeGreaterThan(1_000)

  // The process ends here; this one only leaves its listener behind.
  await server.abort()
  await start()
  const again = await consumer(channel)
  const left = new Set(promised)
  while (left.size > 0) {
    const message = await again.value()
    left.delete(Number.parseInt(decoded(message), 10))
    await again.commit(message.transaction)
  }
  again.peer.destroy()
  // What is committed makes room: nobody has to restart anything.
  await eventually(() => expect(intake().refusal).toBeUndefined())
})
