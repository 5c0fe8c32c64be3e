/** Forms that are made of declared parameters, and what runs once whatever is pressed. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, describe, expect } from 'vitest'
import { consoleTests, howTo, missing } from './rig.ts'

const directory = mkdtempSync(join(tmpdir(), 'cinnabar-console-'))
const file = join(directory, 'runs')
const EXEC = `
[[exec]]
name = "exec.append"
description = "Adds a line to a file <b>slowly</b>."
argv = ["sh", "-c", 'echo "$1 $2 $3" >> ${file}; sleep 0.3', "sh", "{word}", "{count}", "{mode}"]

[[exec.parameter]]
name = "word"
pattern = "[a-z]+"
max_length = 8

[[exec.parameter]]
name = "count"
type = "integer"
min = 1
max = 9
default = 3

[[exec.parameter]]
name = "mode"
values = ["soft", "hard"]

[[exec]]
name = "exec.unlock"
argv = ["sh", "-c", 'read -r pin; test "$pin" = 1234']
stdin = "{pin}"

[[exec.parameter]]
name = "pin"
pattern = "[0-9]{4}"
secret = true
`

const CONFIRM = 'dialog[open] button:text-is("Run")'

const it = consoleTests(EXEC)

// A browser is not everywhere.
describe.skipIf(missing)(`controls in the console${howTo}`, () => {
  afterAll(() => rmSync(directory, { recursive: true }))

  const lines = (): string[] => readFileSync(file, 'utf8').trimEnd().split('\n')
  const run = async (page: Page): Promise<void> => {
    await page.click('button:text-is("Run")')
    await page.click(CONFIRM)
  }
  const field = (page: Page, name: string) => page.locator(`.field [name=${name}]`)

  it('lists them by family, and those that match', async ({ page, rig }) => {
    await rig.open(page, '#/controls')
    await rig.signIn(page)
    await page.waitForSelector('section[aria-label=exec]')
    await page.waitForSelector('section[aria-label=channel] a:has-text("purge")')
    await page.fill('[aria-label="Search controls"]', 'append')
    await page.waitForSelector('section[aria-label=channel]', { state: 'detached' })
    expect(await page.locator('td b').count()).toBe(0)
    await page.click('a:has-text("append")')
    await page.waitForSelector('h1:has-text("exec.append")')
    expect(page.url()).toContain('#/controls/exec.append')
  })

  it('checks what is declared, runs dry, asks, and then runs once under a double click', async ({ page, rig }) => {
    await rig.open(page, '#/controls/exec.append')
    await rig.signIn(page)
    await page.waitForSelector('.field')
    const about = async (name: string) => await page.textContent(`.field:has([name=${name}]) small`)
    expect(await about('word')).toContain('at most 8 bytes, matches [a-z]+')
    expect(await about('count')).toContain('1 to 9, 3 if left out')
    expect(await field(page, 'mode').locator('option').allTextContents()).toEqual(['choose', 'soft', 'hard'])

    await field(page, 'count').fill('10')
    await page.click('text=Dry run')
    await page.waitForSelector('.field:has([name=word]) .problem')
    expect(await about('count')).toContain('At most 9 is possible.')
    await field(page, 'word').fill('UPPER')
    await field(page, 'count').fill('2')
    await field(page, 'mode').selectOption('hard')
    await page.click('text=Dry run')
    // A pattern is judged by the server alone.
    await page.waitForSelector('text=does not match [a-z]+')
    await field(page, 'word').fill('once')
    await page.click('text=Dry run')
    await page.waitForSelector('text=allowed: nothing was run')
    expect(await page.textContent('.buttons .first')).toBe('Run')
    await field(page, 'count').fill('3')
    expect(await page.textContent('.buttons .first')).toBe('Dry run')
    await field(page, 'count').fill('2')
    await field(page, 'count').press('Enter')
    await page.waitForSelector('.first:text-is("Run")')
    expect(() => lines()).toThrow()

    await page.click('button:text-is("Run")')
    const dialog = page.locator('dialog[open]')
    expect(await dialog.locator('p').textContent()).toBe('Run exec.append on the server n1?')
    expect(await dialog.locator('dl div').allTextContents()).toEqual(['wordonce', 'count2', 'modehard'])
    await dialog.locator('text=Cancel').click()
    expect(() => lines()).toThrow()
    await page.click('button:text-is("Run")')
    await page.dblclick(CONFIRM)
    await page.waitForSelector('text=done')
    await page.waitForSelector('text=/result \\d+/')
    expect(lines()).toEqual(['once 2 hard'])
    await run(page)
    await expect.poll(() => lines().length).toBe(2)
    // One at a time: until it has ended, the next one is answered BUSY.
    await page.waitForSelector('button:text-is("Run")')
  })

  it('leads to the audit record of what was run', async ({ page, rig }) => {
    await rig.open(page, '#/controls/exec.append')
    await rig.signIn(page)
    await field(page, 'word').fill('audited')
    await field(page, 'mode').selectOption('soft')
    await run(page)
    await page.click('a:text-is("audit records")')
    await page.waitForSelector('h1:text-is("Audit")')
    await page.waitForSelector('td:has-text("audited")')
    await page.waitForSelector('text=/^2 of /')
    expect(await page.locator('td:has-text("exec.append")').count()).toBe(2)
  })

  it('offers the roles that there are, and another one only where a control makes it', async ({ page, rig }) => {
    await rig.open(page, '#/controls/user.add')
    await rig.signIn(page)
    await page.waitForSelector('select[name=role] option:text-is("operator")', { state: 'attached' })
    const options = () => field(page, 'role').locator('option').allTextContents()
    await expect.poll(options).toEqual(['left out', 'admin', 'consumer', 'operator'])
    await rig.open(page, '#/controls/role.allow')
    await page.waitForSelector('h1:has-text("role.allow")')
    await expect.poll(options).toEqual(['choose', 'operator', 'another role …'])
    await field(page, 'role').selectOption('another role …')
    await page.waitForSelector('input[name=role]:focus')
    await page.click('text=choose one that there is')
    await page.waitForSelector('select[name=role]')
  })

  it('keeps no secret in the page', async ({ page, rig }) => {
    await rig.open(page, '#/controls/exec.unlock')
    await rig.signIn(page)
    expect(await field(page, 'pin').getAttribute('type')).toBe('password')
    await field(page, 'pin').fill('1234')
    await run(page)
    await page.waitForSelector('text=done')
    expect(await field(page, 'pin').inputValue()).toBe('')
    expect(await page.content()).not.toContain('1234')
  })

  it('asks with the same key after a lost connection, so that it runs once', async ({ rig }) => {
    const page = await rig.tab()
    await rig.open(page, '#/controls/exec.append')
    // Cuts the connection as soon as the control has begun.
    let cut = (): void => {}
    await page.routeWebSocket(/monitor/, (socket) => {
      const server = socket.connectToServer()
      cut = () => void socket.close()
      server.onMessage((message) => socket.send(message))
    })
    await page.reload()
    await rig.signIn(page)
    const before = lines().length
    await field(page, 'word').fill('cut')
    await field(page, 'mode').selectOption('soft')
    await run(page)
    await expect.poll(() => lines().length).toBe(before + 1)
    cut()
    await page.waitForSelector('text=done')
    expect(lines()).toHaveLength(before + 1)
    await page.close()
  })
})
