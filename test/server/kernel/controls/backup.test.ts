/** Backups with the history: nothing is replaced, and what fails leaves nothing behind. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Backups } from '../../../../server/kernel/controls/backup.ts'

let dataDir = ''
let backups = ''
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'cinnabar-backups-'))
  backups = join(dataDir, 'backups')
})
afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

const store = {
  backup: async (path: string) => {
    writeFileSync(path, 'database')
    return 8
  },
}

async function made(copyHistory: (directory: string) => Promise<number | undefined>, history = true) {
  const args = new Map<string, unknown>([
    ['file', 'copy'],
    ['history', history],
  ])
  const prepared = new Backups(store, dataDir, copyHistory).control.prepare(args as never, {} as never)
  return await (prepared as unknown as () => Promise<{ readonly outcome: string; readonly detail: string }>)()
}

const copied = async (directory: string): Promise<number> => {
  mkdirSync(directory)
  return 3
}

describe('a backup with the history', () => {
  it('is a directory with both', async () => {
    expect(await made(copied)).toMatchObject({ outcome: 'ok', detail: `11 bytes in ${join(backups, 'copy')}` })
    expect(readdirSync(backups, { recursive: true }).sort()).toEqual(['copy', 'copy/cinnabar.db', 'copy/history'])
  })

  it('is a file where there is no history', async () => {
    expect(await made(async () => undefined)).toMatchObject({ outcome: 'ok' })
    expect(readFileSync(join(backups, 'copy'), 'utf8')).toBe('database')
    expect(readdirSync(backups)).toEqual(['copy'])
  })

  it.each([
    ['with a history', copied],
    ['without one', async () => undefined],
  ])('replaces nothing, %s', async (_, copyHistory) => {
    mkdirSync(backups)
    writeFileSync(join(backups, 'copy'), 'another')
    expect(await made(copyHistory)).toMatchObject({
      outcome: 'failed',
      detail: `${join(backups, 'copy')} exists already: choose another name`,
    })
    expect(readFileSync(join(backups, 'copy'), 'utf8')).toBe('another')
    expect(readdirSync(backups)).toEqual(['copy'])
  })

  it('replaces nothing that came while it was made', async () => {
    const meanwhile = async (): Promise<undefined> => {
      writeFileSync(join(backups, 'copy'), 'another')
      return undefined
    }
    expect(await made(meanwhile)).toMatchObject({ outcome: 'failed' })
    expect(readFileSync(join(backups, 'copy'), 'utf8')).toBe('another')
    expect(readdirSync(backups)).toEqual(['copy'])
  })

  it('leaves nothing if the history cannot be copied, and says why', async () => {
    const fails = async (): Promise<never> => {
      throw new Error('the disk is full')
    }
    expect(await made(fails)).toMatchObject({
      outcome: 'failed',
      detail: 'the history was not copied, and so nothing was: the disk is full',
    })
    expect(readdirSync(backups)).toEqual([])
  })

  it('says what is wrong with the directory', async () => {
    writeFileSync(backups, 'a file')
    expect(await made(copied)).toMatchObject({ outcome: 'failed', detail: expect.stringContaining(backups) })
  })
})
