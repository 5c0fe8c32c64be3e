/** A server whose configuration does not say that it keeps a history: it remembers its host from the start on. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { connect } from '../../client/index.ts'
import { eventually } from '../support/eventually.ts'
import { PASSWORD, ServerProcess } from '../support/server-process.ts'

const METRIC = 'host.load.one'
/** It measures more often than it does by itself, so that nobody has to wait. */
const OFTEN = '[history]\ninterval = "1s"\n'
const OFF = 'keep = "0"\n'

let server: ServerProcess | undefined
afterEach(async () => {
  await server?.end('SIGKILL')
  await server?.remove()
})

/** The times of what is remembered of the host. */
async function remembered({ tcpPort }: ServerProcess): Promise<number[]> {
  const consumer = await connect(`tcp://127.0.0.1:${tcpPort}`, { identity: 'admin', password: PASSWORD })
  const times: number[] = []
  try {
    for await (const series of consumer.history(METRIC)) times.push(...series.times)
  } finally {
    await consumer.close()
  }
  return times
}

async function rememberedMoreThan(of: ServerProcess, count: number): ReturnType<typeof remembered> {
  return eventually(async () => {
    const found = await remembered(of)
    expect(found.length).toBeGreaterThan(count)
    return found
  })
}

it('has a chart of the host since its start, also after a kill and a restart', async () => {
  const unconfigured = new ServerProcess(OFTEN)
  server = unconfigured
  await unconfigured.start()
  const before = await rememberedMoreThan(unconfigured, 1)
  await unconfigured.end('SIGKILL')
  await unconfigured.start()
  const after = await rememberedMoreThan(unconfigured, before.length)
  expect(after.slice(0, before.length)).toEqual(before)
  expect(new Set(after).size).toBe(after.length)
})

it('begins with a data directory that has none, and leaves what it has when it is switched off', async () => {
  const upgraded = new ServerProcess(OFTEN + OFF)
  server = upgraded
  const fresh = join(upgraded.directory, 'data', 'history', 'fresh.db')
  await upgraded.start()
  await upgraded.end('SIGTERM')
  expect(existsSync(fresh)).toBe(false)

  const configured = readFileSync(upgraded.config, 'utf8')
  writeFileSync(upgraded.config, configured.replace(OFF, ''))
  await upgraded.start()
  const times = await rememberedMoreThan(upgraded, 0)
  await upgraded.end('SIGTERM')

  writeFileSync(upgraded.config, configured)
  await upgraded.start()
  await expect(remembered(upgraded)).rejects.toMatchObject({ status: 'UNSUPPORTED' })
  await upgraded.end('SIGTERM')
  writeFileSync(upgraded.config, configured.replace(OFF, ''))
  await upgraded.start()
  expect((await rememberedMoreThan(upgraded, times.length)).slice(0, times.length)).toEqual(times)
})
