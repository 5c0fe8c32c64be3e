/** The server is killed while a mail is under way: the mail comes after all, with the Message-ID that it had, and once. */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { SMTPServer } from 'smtp-server'
import { afterEach, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { ServerProcess } from '../support/server-process.ts'

let server: ServerProcess | undefined
let mailServer: SMTPServer | undefined

afterEach(async () => {
  await server?.end('SIGKILL')
  await server?.remove()
  await new Promise<void>((resolve) => (mailServer === undefined ? resolve() : mailServer.close(() => resolve())))
})

it('has the Message-ID after a kill that it had before', async () => {
  let isBusy = true
  const refused: string[] = []
  const taken: string[] = []
  mailServer = new SMTPServer({
    authOptional: true,
    logger: false,
    onData(stream, _session, done) {
      const parts: Buffer[] = []
      stream.on('data', (part: Buffer) => parts.push(part))
      stream.on('end', () => {
        const id = /^Message-ID: (.*)$/im.exec(Buffer.concat(parts).toString())?.[1]?.trim() ?? ''
        if (isBusy) refused.push(id)
        else taken.push(id)
        done(isBusy ? Object.assign(new Error('come later'), { responseCode: 451 }) : undefined)
      })
    },
  })
  mailServer.on('error', () => {})
  const listening = mailServer.listen(0, '127.0.0.1')
  await once(listening, 'listening')
  const { port } = listening.address() as AddressInfo
  const killed = new ServerProcess(
    '[alerts]\nrules = ["*.rules.yml"]\n' +
      `[[notify]]\nname = "mail"\nurl = "smtp://127.0.0.1:${port}"\nfrom = "c@mon.example"\nto = ["ann@example.org"]\ngroup_wait = "0s"\n`,
  )
  server = killed
  const rules = 'groups: [{ name: always, interval: 1s, rules: [{ alert: Always, expr: vector(1) }] }]\n'
  writeFileSync(join(killed.directory, 'a.rules.yml'), rules)
  await killed.start()
  await eventually(() => expect(refused.length).toBeGreaterThan(0))
  await killed.end('SIGKILL')
  isBusy = false
  await killed.start()
  await eventually(() => expect(taken).toHaveLength(1))
  expect(taken[0]).toMatch(/^<[0-9a-f-]{36}\.mail@mon\.example>$/)
  expect(new Set(refused)).toEqual(new Set(taken))
})
