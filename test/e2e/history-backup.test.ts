/** A server with a history that is backed up while it records, and a server that is made of the backup. */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { connect } from '../../client/index.ts'
import { historyFiles } from '../../storage/history/backup.ts'
import { tokenOfPublisher } from '../rig/prometheus-stack.ts'
import { FED, PromisedFeed } from '../rig/promised-feed.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { PROGRAM } from '../support/program.ts'
import { runToEnd } from '../support/run-to-end.ts'
import { PASSWORD, ServerProcess } from '../support/server-process.ts'

const KEEP = 'keep = "3650d"'
const SECTIONS = `[history]
${KEEP}
resolution = "0"
metrics = ["prometheus.*"]
`

let server: ServerProcess | undefined
let feed: PromisedFeed | undefined
afterEach(async () => {
  if (feed !== undefined) feed.isOver = true
  await server?.end('SIGKILL')
  await server?.remove()
})

function cinnabar(of: ServerProcess, ...words: string[]): string {
  const { status, stderr } = spawnSync(process.execPath, [PROGRAM, ...words, '--config', of.config], {
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`cinnabar ${words.join(' ')}: ${status}: ${stderr}`)
  return stderr
}

async function cinnabarMeanwhile(of: ServerProcess, ...words: string[]): Promise<string> {
  const options = { cwd: of.directory, env: process.env }
  const { code, out } = await runToEnd(process.execPath, [PROGRAM, ...words, '--config', of.config], options)
  expect(code, out).toBe(0)
  return out
}

/** The values that a server remembers of the feed, with their times in milliseconds. */
async function remembered(of: ServerProcess): Promise<ReadonlyMap<number, number>> {
  const consumer = await connect(`tcp://127.0.0.1:${of.tcpPort}`, { identity: 'admin', password: PASSWORD })
  const found = new Map<number, number>()
  try {
    for await (const { times, values } of consumer.history(FED, { since: 0 })) {
      for (const [at, value] of values.entries()) {
        expect(found.has(value)).toBe(false)
        found.set(value, (times[at] as number) / 1_000)
      }
    }
  } finally {
    await consumer.close()
  }
  return found
}

it('has in its backup what was promised before, and goes on with it', { timeout: 240_000 }, async () => {
  const [tcp, http] = [await freePort(), await freePort()]
  const backed = new ServerProcess(SECTIONS, { tcp, http })
  server = backed
  await backed.start()
  const admin = await backed.seat()
  const token = await tokenOfPublisher(admin, 'prometheus.*')
  admin.peer.destroy()
  const feeding = new PromisedFeed({ url: `http://127.0.0.1:${http}`, token })
  feed = feeding
  const fed = feeding.run(5)
  await eventually(async () => expect((await remembered(backed)).size).toBeGreaterThan(200))
  const promised = new Set(feeding.promised)
  const copy = join(backed.directory, 'copy')
  // The feed is in this process: it goes on while the server makes the copy.
  const backup = cinnabarMeanwhile(backed, 'backup', copy)
  await eventually(() => expect(feeding.promised.size).toBeGreaterThan(promised.size))
  expect(await backup).toBe(`${copy} is complete\n`)
  expect(readdirSync(copy).sort()).toEqual(['cinnabar.db', 'history'])
  expect(readdirSync(join(backed.directory, 'data', 'backups'))).toEqual([])
  feeding.isOver = true
  await fed
  await backed.end('SIGKILL')

  const notes = cinnabar(backed, 'restore', copy)
  expect(notes).toContain('is the database and the history of')
  expect(notes).toContain('history.replaced-1')
  await backed.start()
  await eventually(async () => {
    const found = await remembered(backed)
    expect([...promised].filter((number) => !found.has(number))).toEqual([])
    for (const [value, timeMs] of found) expect(timeMs).toBe(feeding.sampleOf(value).timeMs)
  })

  // Switched off, it is copied as well.
  await backed.end('SIGTERM')
  writeFileSync(backed.config, readFileSync(backed.config, 'utf8').replace(KEEP, 'keep = "0"'))
  await backed.start()
  const second = join(backed.directory, 'second')
  cinnabar(backed, 'backup', second)
  expect(historyFiles(join(second, 'history'))).toEqual(historyFiles(join(backed.directory, 'data', 'history')))
  const alone = join(backed.directory, 'alone.db')
  cinnabar(backed, 'backup', alone, '--without-history')
  expect(existsSync(join(alone, 'history'))).toBe(false)
  await backed.end('SIGTERM')
  expect(cinnabar(backed, 'restore', alone)).not.toContain('history')
  expect(existsSync(join(backed.directory, 'data', 'history', 'fresh.db'))).toBe(true)
})
