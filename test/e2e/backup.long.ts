/** `cinnabar backup` of a server that is busy, then kill -9 and `cinnabar restore`: as an operator does it. */

import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { args, command } from '../support/bytes.ts'
import { CounterFeed } from '../support/counter-feed.ts'
import { freePort } from '../support/free-port.ts'
import { PROGRAM } from '../support/program.ts'
import { ledgerWhen } from '../support/records.ts'
import { ServerProcess } from '../support/server-process.ts'

let server: ServerProcess
let feed: CounterFeed
beforeEach(async () => {
  const port = await freePort()
  // Without a history a backup is a file; history-backup.test.ts has one with a history.
  const sections = `[gmetric]\nlisten = "127.0.0.1:${port}"\n[history]\nkeep = "0"\n`
  server = new ServerProcess(sections, { tcp: await freePort() })
  feed = new CounterFeed(port)
  await server.start()
})
afterEach(async () => {
  feed.close()
  await server.remove()
})

function cinnabar(...words: string[]): { code: number | null; notes: string } {
  const { status, stderr } = spawnSync(process.execPath, [PROGRAM, ...words, '--config', server.config], {
    encoding: 'utf8',
  })
  return { code: status, notes: stderr }
}

it('gives back what was there, says so to its consumers, and keeps what it replaced', async () => {
  const copy = join(server.directory, 'copy.db')
  const { peer } = await server.login()
  peer.send(command.defChannel(1))
  const { result: channel } = await peer.response(1)
  peer.send(command.collect(2, 'gmetric.counter', args()))
  const { result: metric } = await peer.response(2)
  peer.send(command.subscribe(3, metric, channel))
  await peer.response(3)
  feed.send(20)
  await ledgerWhen(peer, channel, ({ accepted, unstored }) => accepted === 20 && unstored === 0)
  peer.destroy()

  expect(cinnabar('backup', copy)).toEqual({ code: 0, notes: `${copy} is complete\n` })
  expect(statSync(copy).mode & 0o777).toBe(0o600)
  expect(readdirSync(join(server.directory, 'data', 'backups'))).toEqual([])
  // As a backup leaves it that could not be moved.
  const backups = join(server.directory, 'data', 'backups')
  writeFileSync(join(backups, 'left.db'), 'x')
  const second = cinnabar('backup', join(server.directory, 'second.db'))
  expect([second.code, second.notes]).toEqual([0, expect.stringContaining(`${backups} has another file`)])
  expect(readdirSync(backups)).toEqual(['left.db'])
  const again = cinnabar('backup', copy)
  expect([again.code, again.notes]).toEqual([2, expect.stringContaining('exists already')])
  expect(cinnabar('restore', copy)).toMatchObject({
    code: 1,
    notes: expect.stringContaining('another server is using'),
  })

  await server.end('SIGKILL')
  const restored = cinnabar('restore', copy)
  expect([restored.code, restored.notes]).toEqual([0, expect.stringContaining('cinnabar.db.replaced-1')])
  expect(existsSync(join(server.directory, 'data', 'cinnabar.db.replaced-1'))).toBe(true)
  await server.start()
  expect(server.errors).toContain('counts as restored')

  const { peer: next } = await server.login()
  next.send(command.setChannel(1, channel))
  await next.response(1)
  feed.send(1)
  const seen: unknown[] = []
  let last = 0
  while (seen.length < 22) {
    const message = await next.next()
    if (message.kind === 'closed') throw new Error('closed')
    if (message.kind !== 'value' && message.kind !== 'gap') continue
    expect(message.transaction).toBeGreaterThan(last)
    last = message.transaction
    seen.push(message.kind === 'gap' ? message.reason : 'value')
  }
  expect(seen).toEqual([...Array(20).fill('value'), 7, 'value'])
  next.destroy()
})
