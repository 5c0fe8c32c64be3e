/**
 * A server of its own that publishes consecutive numbers in requests, and says which of them it has said yes to. Arguments:
 * its directory, the first number, the seed. It prints `ready PORT`, and after a line on its standard input begins with
 * `begun FROM TO` before the values of a request, and `yes FROM TO` when its mark is durable, each written before anything else
 * happens: whoever kills it has read what it has promised.
 */
import { writeSync } from 'node:fs'
import { join } from 'node:path'
import { PasswordHasher } from '../../../auth/password.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { createLogger } from '../../../server/kernel/core/log.ts'
import { defaultConfig, startServer } from '../../../server/start/server.ts'
import { Random } from '../../support/random.ts'
import { PushSensor } from '../../support/test-sensor.ts'

const [directory = '', first = '', seed = '', password = ''] = process.argv.slice(2)
const MOST_WAITING = 40
const MOST_VALUES = 60
const SERIES = 5

const say = (line: string): void => void writeSync(1, `${line}\n`)

const base = defaultConfig()
let push: PushSensor | undefined
const server = await startServer({
  config: {
    ...base,
    producer: { name: 'n1', dataDir: join(directory, 'data') },
    listen: { ...base.listen, tcp: { host: '127.0.0.1', port: 0 }, http: undefined },
    gmetric: { ...base.gmetric, listen: undefined, listenNamed: false },
    auth: { ...base.auth, scramIterations: 4096 },
  },
  hasher: new PasswordHasher({ rounds: 4 }),
  log: createLogger('error'),
  sensors: (hub) => {
    push = new PushSensor(hub, 'pub.')
    push.push('pub.s0', { type: BasicType.UINT32, value: 0 }, Date.now() * 1000)
  },
  adminPassword: password,
})
const { hub, producer } = server.parts
const { intake } = producer
const sensor = hub.sensors.find(({ family }) => family === 'pub.')
if (sensor === undefined || push === undefined) throw new Error('the sensor is missing')

const random = new Random(Number(seed))
let next = Number(first)

function publish(into: PushSensor, of: NonNullable<typeof sensor>): void {
  const { refusal } = intake
  if (refusal !== undefined) throw new Error(`refused: ${refusal.detail}`)
  const taking = intake.begin(of)
  const from = next
  next += 1 + random.below(MOST_VALUES)
  const to = next - 1
  say(`begun ${from} ${to}`)
  for (let value = from; value <= to; value++) {
    into.push(`pub.s${random.below(SERIES)}`, { type: BasicType.UINT32, value }, Date.now() * 1000)
  }
  void taking.stored().then((late) => {
    if (late !== undefined) throw new Error(`not stored: ${late.detail}`)
    say(`yes ${from} ${to}`)
  })
}

function goOn(into: PushSensor, of: NonNullable<typeof sensor>): void {
  // Often several before the next batch, and some of them while one is on its way.
  for (let requests = random.below(3); requests > 0 && intake.waiting < MOST_WAITING; requests--) publish(into, of)
  setTimeout(() => goOn(into, of), random.below(6))
}

process.stdin.once('data', () => goOn(push as PushSensor, sensor))
say(`ready ${server.tcp?.port}`)
