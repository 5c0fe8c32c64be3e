/** For tests that copy a database on purpose: the copy does not count as restored. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { openSqlite } from '../../storage/sqlite/driver.ts'

/** Makes the closed database of a directory one that was never served: it may be copied. */
export function forgetDirectory(directory: string): void {
  const database = openSqlite(join(directory, 'cinnabar.db'))
  database.exec("update meta set directory = ''")
  database.close()
  rmSync(join(directory, 'generation'), { force: true })
}
