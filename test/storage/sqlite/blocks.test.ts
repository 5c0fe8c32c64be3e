import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { BlockTables } from '../../../storage/sqlite/blocks.ts'
import { migrate } from '../../../storage/sqlite/migrations.ts'
import { batch } from '../../contracts/store-batch.ts'

/** More than fit on the stack as the arguments of one call. */
const MANY = 200_000

test('a channel of any number of blocks is touched by its removal', () => {
  const database = new Database(':memory:')
  migrate(database)
  database.exec(`
    with recursive ids(id) as (select 1 union all select id + 1 from ids where id < ${MANY})
    insert into block (id, channel) select id, 7 from ids`)
  const touched = new BlockTables(database).touchedBy(batch(1, { changes: [{ remove: 'channel', id: 7 }] }))
  expect(touched).toHaveLength(MANY)
  expect([touched[0], touched.at(-1)]).toEqual([1, MANY])
})
