/** A consumer with three addresses: those of its server, of a restored copy of that, and of another server. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { type Consumer, connect } from '../../client/index.ts'
import { freePort } from '../support/free-port.ts'
import { PROGRAM } from '../support/program.ts'
import { PASSWORD, ServerProcess } from '../support/server-process.ts'

const login = { identity: 'admin', password: PASSWORD }
const opened: (ServerProcess | Consumer)[] = []
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await (one instanceof ServerProcess ? one.remove() : one.close())
})

function serverAt(tcp: number): ServerProcess {
  const server = new ServerProcess('', { tcp })
  opened.push(server)
  return server
}

function cinnabar(server: ServerProcess, ...words: string[]): void {
  const argv = [PROGRAM, ...words, '--config', server.config]
  const { status, stderr } = spawnSync(process.execPath, argv, { encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
}

const namesOn = async (consumer: Consumer) =>
  (await consumer.query('producer.channels')).elements.map(({ plain }) => (plain as { name?: string }).name ?? '')

it('goes on at the copy with its channel, and makes none at the other server', async () => {
  const ports = [await freePort(), await freePort(), await freePort()] as const
  const urls = ports.map((port) => `tcp://127.0.0.1:${port}`)
  const [server, copied, other] = [serverAt(ports[0]), serverAt(ports[1]), serverAt(ports[2])]
  await server.start()
  const consumer = await connect(urls, login, { name: 'load' })
  opened.push(consumer)
  await consumer.follow('host.load.one', { interval_ms: 50 })
  const seen: string[] = []
  consumer.on('restored', ({ before, generation }) => seen.push(before === generation ? 'same' : 'restored'))
  const values = consumer[Symbol.asyncIterator]()
  const next = async () => (await values.next()).value?.metric
  expect([await next(), await next()]).toEqual(['host.load.one', 'host.load.one'])
  const { channel } = consumer

  cinnabar(server, 'backup', join(copied.directory, 'copy.db'))
  cinnabar(copied, 'restore', join(copied.directory, 'copy.db'))
  await Promise.all([copied.start(), other.start()])
  await server.end('SIGKILL')
  await consumer.nop()
  while (seen.length === 0) await next()
  expect([await next(), consumer.channel, seen]).toEqual(['host.load.one', channel, ['restored']])

  const ended = new Promise((resolve) => consumer.on('closed', resolve))
  await copied.end('SIGKILL')
  expect(await ended).toMatchObject({ code: 'OTHER_SERVER', message: expect.stringContaining(urls[2]!) })
  await values.next().catch(() => {})
  const there = await connect(urls[2]!, login)
  opened.push(there)
  expect(await namesOn(there)).not.toContain('load')
})
