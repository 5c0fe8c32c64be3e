/** `cinnabar rules backtest` over what a server has stored, with the rights of a token. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { PROGRAM } from '../support/program.ts'
import { tokenFor } from '../support/publisher.ts'
import { runToEnd } from '../support/run-to-end.ts'
import { ServerProcess } from '../support/server-process.ts'

const MINUTE_S = 60
const RULES = `groups:
  - name: disks
    rules:
      - record: disk:used:ratio
        expr: 1 - disk_free_ratio
      - alert: AlmostFull
        expr: disk:used:ratio > 0.9
        for: 5m
        labels:
          owner: '{{ with query "disk_owner" }}{{ . | first | label "team" }}{{ end }}'
`

let server: ServerProcess
beforeEach(async () => {
  const ports = { tcp: await freePort(), http: await freePort() }
  server = new ServerProcess('[history]\nmetrics = ["prometheus.*"]\nresolution = "0"\n', ports)
})
afterEach(() => server.remove())

async function cinnabar(...words: string[]): Promise<{ code: number | null; out: string }> {
  return runToEnd(process.execPath, [PROGRAM, ...words, '--config', server.config], {
    cwd: server.directory,
    env: process.env,
  })
}

it('says when alerts would have fired, of what the token may read', { timeout: 120_000 }, async () => {
  await server.start()
  const seat = await server.seat()
  const write = async (name: string, scope: string): Promise<string> => {
    const path = join(server.directory, name)
    writeFileSync(path, await tokenFor(seat, 'admin', scope), { mode: 0o600 })
    return path
  }
  const beginS = Math.floor(Date.now() / 1_000 / MINUTE_S) * MINUTE_S - 180 * MINUTE_S
  const free = (minute: number): number => (minute >= 60 && minute < 90 ? 0.05 : 0.5)
  const lines = Array.from({ length: 170 }, (_, minute) => [
    `disk_free_ratio{host="web1"} ${free(minute)} ${beginS + minute * MINUTE_S}`,
    `disk_owner{team="storage"} 1 ${beginS + minute * MINUTE_S}`,
  ])
  const ofEach = [0, 1].map((index) => lines.map((pair) => pair[index]).join('\n'))
  const text = `# TYPE disk_free_ratio gauge\n${ofEach[0]}\n# TYPE disk_owner gauge\n${ofEach[1]}\n# EOF\n`
  writeFileSync(join(server.directory, 'samples.om'), text)
  const importing = await write('import.token', 'EXECUTE history.import')
  expect(await cinnabar('history', 'import', 'samples.om', '--token-file', importing)).toMatchObject({ code: 0 })
  writeFileSync(join(server.directory, 'disks.yml'), RULES)
  const since = new Date(beginS * 1_000).toISOString()
  const backtest = async (token: string, ...more: string[]): Promise<{ code: number | null; out: string }> =>
    cinnabar('rules', 'backtest', 'disks.yml', '--since', since, '--token-file', token, ...more)

  const all = await write('all.token', 'COLLECT *')
  const { code, out } = await backtest(all, '--json')
  expect({ code, out }).toMatchObject({ code: 0 })
  const events = out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(events.map(({ state, labels }) => [state, labels.host, labels.owner])).toEqual([
    ['pending', 'web1', 'storage'],
    ['firing', 'web1', 'storage'],
    ['inactive', 'web1', 'storage'],
  ])
  const minutes = events.map(({ time }) => (Date.parse(time) / 1_000 - beginS) / MINUTE_S)
  const [pending = 0, firing = 0, inactive = 0] = minutes
  expect(firing - pending).toBeCloseTo(5)
  expect([Math.floor(pending), Math.floor(inactive)]).toEqual([60, 90])
  const table = await backtest(all)
  expect(table.out).toContain('AlmostFull fired 1 time, for 25 min together, 25 min at the longest')

  // Neither the expression nor the template reads what the token may not.
  const withoutOwner = await backtest(await write('some.token', 'COLLECT prometheus.disk_free_ratio'), '--json')
  expect(
    withoutOwner.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).labels.owner),
  ).toEqual([undefined, undefined, undefined])
  const nothing = await backtest(await write('none.token', 'COLLECT host.*'))
  expect(nothing).toMatchObject({ code: 0 })
  expect(nothing.out).toContain('the server has no samples that the rules need and the token may COLLECT')

  writeFileSync(join(server.directory, 'disks.yml'), RULES.replace('> 0.9', '>'))
  const wrong = await backtest(all)
  expect(wrong).toMatchObject({ code: 1 })
  expect(wrong.out).toContain('disks.yml:')
})
