import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openSqlite } from '../../../storage/sqlite/driver.ts'
import { type Recovered, type RuleRow, StorageError, type TokenRow } from '../../../storage/store.ts'
import { batch, EventLog, frames } from '../../contracts/store-batch.ts'
import { threadlessStore } from '../../support/threadless-store.ts'

const rule: RuleRow = { number: 1, role: 'operator', effect: 'deny', command: '*', object: 'exec.*', where: '{}' }
const token: TokenRow = {
  id: 1,
  user: 1,
  name: '',
  hash: frames(1, 32),
  scope: 'COLLECT a',
  made: 1,
  expires: undefined,
}

describe('damaged rights', () => {
  /** What is as it was written; each test has a copy of its own. */
  let whole = ''
  let directory = ''
  beforeAll(async () => {
    whole = mkdtempSync(join(tmpdir(), 'rights-'))
    const store = threadlessStore({ directory: whole, reserveBytes: 0 })
    const events = new EventLog()
    await store.open(events)
    const changes = [
      { put: 'rule', row: rule },
      { put: 'token', row: token },
      { put: 'token', row: { ...token, id: 2, expires: 9 } },
    ] as const
    store.write(batch(1, { changes }))
    await events.durable(1)
    await store.close()
  })
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'rights-'))
    cpSync(whole, directory, { recursive: true })
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))
  afterAll(() => rmSync(whole, { recursive: true, force: true }))

  function damage(sql: string): void {
    const database = openSqlite(join(directory, 'cinnabar.db'))
    database.exec(sql)
    database.close()
  }

  async function open(): Promise<Recovered> {
    const store = threadlessStore({ directory, reserveBytes: 0 })
    const recovered = await store.open(new EventLog())
    await store.close()
    return recovered
  }

  test.each(["scope = ''", 'user = 2', 'expires = 10', "hash = x'00'", 'id = 7'])(
    'a token of which somebody changed %s is not accepted, and others are',
    async (change) => {
      damage(`update token set ${change} where id = 2`)
      const { tokens, warnings } = await open()
      expect(tokens.map(({ id }) => id)).toEqual([1])
      expect(warnings?.join()).toContain('tokens do not match their checksums')
    },
  )

  test.each(["effect = 'allow'", "object = 'exec.a'", "role = 'x'", '"where" = \'{"a":"b"}\''])(
    'a rule of which somebody changed %s keeps the server from starting',
    async (change) => {
      damage(`update rule set ${change}`)
      const refusal = await open().then(
        () => undefined,
        (error: unknown) => error,
      )
      expect(refusal).toBeInstanceOf(StorageError)
      expect(refusal).toMatchObject({
        code: 'DAMAGED',
        message: expect.stringContaining('rule 1 does not match its checksum'),
      })
    },
  )
})
