/** Series are found by their identity, however many a tenant has. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openFresh, realDisk } from '../../../storage/history/database.ts'
import { FIND_SERIES } from '../../../storage/history/series-table.ts'

it('SQLite finds one by the hash of its labels, and does not go through those of its tenant', () => {
  const directory = mkdtempSync(join(tmpdir(), 'cinnabar-series-'))
  const database = openFresh(realDisk, directory)
  const plan = database.prepare<unknown[], { detail: string }>(`explain query plan ${FIND_SERIES}`).all(1, 2)
  database.close()
  rmSync(directory, { recursive: true })
  expect(plan.map(({ detail }) => detail)).toContain('SEARCH series USING INDEX series_hash (hash=?)')
})
