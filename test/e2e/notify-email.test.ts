/** The server is killed while a mail is under way: the mail comes after all, with the Message-ID that it had, and once. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { MailServer } from '../support/mail-server.ts'
import { ServerProcess } from '../support/server-process.ts'

let server: ServerProcess | undefined
let mailServer: MailServer | undefined

afterEach(async () => {
  await server?.end('SIGKILL')
  await server?.remove()
  await mailServer?.stop()
})

it('has the Message-ID after a kill that it had before', async () => {
  let isBusy = true
  const refused: string[] = []
  const taken: string[] = []
  mailServer = await MailServer.start((text) => {
    const id = /^Message-ID: (.*)$/im.exec(text)?.[1]?.trim() ?? ''
    if (isBusy) refused.push(id)
    else taken.push(id)
    return isBusy ? Object.assign(new Error('come later'), { responseCode: 451 }) : undefined
  })
  const killed = new ServerProcess(
    '[alerts]\nbuiltin = false\nrules = ["*.rules.yml"]\n' +
      `[[notify]]\nname = "mail"\nurl = "smtp://127.0.0.1:${mailServer.port}"\nfrom = "c@mon.example"\nto = ["ann@example.org"]\ngroup_wait = "0s"\n`,
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
