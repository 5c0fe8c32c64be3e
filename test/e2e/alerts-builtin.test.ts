/** A server whose configuration says nothing of rules evaluates those that come with it, until a line of the file says otherwise. */
import { readFileSync, writeFileSync } from 'node:fs'
import { afterEach, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { decoded, type Json } from '../support/records.ts'
import { ServerProcess } from '../support/server-process.ts'

/** They are evaluated more often than by themselves, so that nobody has to wait. */
const OFTEN = '[history]\ninterval = "1s"\n[alerts]\ninterval = "1s"\n'

let server: ServerProcess | undefined
afterEach(async () => {
  await server?.end('SIGKILL')
  await server?.remove()
})

it('all of them can be evaluated, and are gone with a reload', async () => {
  const plain = new ServerProcess(OFTEN)
  server = plain
  await plain.start()
  const seat = await plain.seat()
  const rules = async (): Promise<Json[]> => decoded(await seat.query('producer.rules'))
  const shown = await eventually(async () => {
    const all = await rules()
    expect(new Set(all.map(({ health }) => health))).toEqual(new Set(['ok']))
    return all
  })
  expect(new Set(shown.map(({ file, group }) => `${file} ${group}`))).toEqual(
    new Set(['builtin hosts', 'builtin server']),
  )
  expect(shown.map(({ name }) => name)).toContain('CinnabarHostDiskFills')
  writeFileSync(plain.config, `${readFileSync(plain.config, 'utf8')}builtin = false\n`)
  process.kill(plain.pid, 'SIGHUP')
  await eventually(async () => expect(await rules()).toEqual([]))
})
