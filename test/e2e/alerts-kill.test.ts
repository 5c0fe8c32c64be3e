/** The process is killed while an alert is pending: the next one goes on as if nothing had happened. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { command } from '../support/bytes.ts'
import { decoded } from '../support/records.ts'
import { ServerProcess } from '../support/server-process.ts'

const RULES = `groups:
  - name: always
    interval: 1s
    rules:
      - alert: Always
        expr: vector(1)
        for: 8s
`

let server: ServerProcess | undefined
afterEach(async () => {
  await server?.end('SIGKILL')
  await server?.remove()
})

it('fires after the same time, and each transition is reported to a consumer once', async () => {
  const killed = new ServerProcess('[alerts]\nbuiltin = false\nrules = ["*.rules.yml"]\n')
  server = killed
  await killed.start()
  const first = await killed.seat()
  const channel = await first.defChannel()
  await first.setChannel(channel)
  const id = await first.collect('alert')
  await first.ok((seq) => command.subscribe(seq, id, channel))
  writeFileSync(join(killed.directory, 'a.rules.yml'), RULES)
  process.kill(killed.pid, 'SIGHUP')
  expect(decoded(await first.value())).toMatchObject({ alertname: 'Always', value: { state: 'pending' } })
  await killed.end('SIGKILL')
  await killed.start()
  const again = await killed.seat()
  await again.setChannel(channel)
  // The first was not committed.
  const reported = (await again.values(2)).map((message) => decoded(message).value)
  expect(reported.map(({ state, sequence }) => [state, Number(sequence)])).toEqual([
    ['pending', 1],
    ['firing', 2],
  ])
  const [pending, firing] = reported
  expect(firing.since).toBe(pending.since)
  expect(Number(firing.fired) - Number(firing.since)).toBe(8_000_000)
})
