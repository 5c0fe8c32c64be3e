/** A server that is killed while it delivers JSON: what it has promised is at the receiver once, by the rule of docs/drains.md. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { tokenOfPublisher } from '../rig/prometheus-stack.ts'
import { FED, PromisedFeed } from '../rig/promised-feed.ts'
import { JsonReceiver } from '../server/wings/drains/json-receiver.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { ServerProcess } from '../support/server-process.ts'

const KILLS = 10
/** One answer of so many does not come, although the values were taken. */
const LOST_ANSWERS = 3
const PAUSE_MS = 5

let receiver: JsonReceiver | undefined
let server: ServerProcess | undefined
let feed: PromisedFeed | undefined
let directory = ''
afterEach(async () => {
  if (feed !== undefined) feed.isOver = true
  await server?.end('SIGKILL')
  await server?.remove()
  await receiver?.close()
  rmSync(directory, { recursive: true, force: true })
})

it('each value that was promised is kept once, through kills and lost answers', async () => {
  const taking = new JsonReceiver()
  receiver = taking
  taking.secret = `whsec_${Buffer.from('a secret that has 32 bytes in it').toString('base64')}`
  taking.answer = () => ({ status: taking.requests.length % LOST_ANSWERS === 0 ? 0 : 204 })
  await taking.open()
  const [tcp, http] = [await freePort(), await freePort()]
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-drain-'))
  const secretFile = join(directory, 'secret')
  writeFileSync(secretFile, `${taking.secret}\n`)
  const drain = `[[drain]]
name = "d"
role = "operator"
url = "json+http://127.0.0.1:${taking.port}/values"
metrics = ["prometheus.*"]
batch_age = "50ms"
secret_file = ${JSON.stringify(secretFile)}
`
  const killed = new ServerProcess(drain, { tcp, http })
  server = killed
  await killed.start()
  const admin = await killed.seat()
  const token = await tokenOfPublisher(admin, 'prometheus.*')
  admin.peer.destroy()
  const feeding = new PromisedFeed({ url: `http://127.0.0.1:${http}`, token })
  feed = feeding
  const fed = feeding.run(PAUSE_MS)
  for (let kill = 0; kill < KILLS; kill++) {
    const before = taking.kept.length
    await eventually(() => expect(taking.kept.length).toBeGreaterThan(before))
    await killed.end('SIGKILL')
    await killed.start()
  }
  const before = feeding.promised.size
  await eventually(() => expect(feeding.promised.size).toBeGreaterThan(before))
  feeding.isOver = true
  await fed
  const numbers = () => taking.kept.filter(({ name }) => name === `prometheus.${FED}`).map(({ value }) => Number(value))
  await eventually(() => {
    const there = new Set(numbers())
    expect([...feeding.promised].filter((number) => !there.has(number))).toEqual([])
  })
  expect(new Set(numbers()).size).toBe(numbers().length)
  expect(taking.requests.every(({ isSigned }) => isSigned)).toBe(true)
  expect(feeding.promised.size).toBeGreaterThan(0)
})
