/** Controls of an upstream that do not fit into one list: those that may be run are asked for apart, and what is missing is said. */
import { afterEach, expect, it } from 'vitest'
import { type Control, ok } from '../../../../server/kernel/controls/control.ts'
import { args, str, type } from '../../../support/bytes.ts'
import { decoded, type Json } from '../../../support/records.ts'
import { Tree } from '../../../support/tree.ts'

let tree: Tree
afterEach(() => tree.stop())

/** Each family fits into a frame, both together do not. */
function bulk(family: string): Control[] {
  return Array.from({ length: 20 }, (_, i) => ({
    name: `bulk.${family}${i}`,
    description: 'd'.repeat(30_000),
    parameters: [],
    prepare: () => () => ok('done'),
  }))
}

async function begin(...controls: readonly string[]): Promise<void> {
  tree = await Tree.start({ role: 'admin', controls })
  await tree.connected()
  tree.lower.server.parts.producer.executor.add([...bulk('a'), ...bulk('b')])
  // With its catalogue, its controls are read again.
  const asked = (): number => tree.commands.filter((frame) => frame.includes('producer.controls')).length
  const before = asked()
  tree.lower.emit(1, 'test.new')
  await tree.until(() => expect(asked()).toBe(before + 2 * controls.length))
  await tree.upper.addUser('boss', { role: 'admin' })
}

async function known(family: string): Promise<number> {
  const boss = await tree.upper.seat('boss')
  const given = args(['producer', type.string, str('east')], ['match', type.string, str(`bulk.${family}*`)])
  const list = decoded(await boss.query('producer.controls', given)) as Json[]
  boss.peer.destroy()
  return list.length
}

it('are all known if each list fits', async () => {
  await begin('bulk.a*', 'bulk.b*')
  await tree.until(async () => expect([await known('a'), await known('b')]).toEqual([20, 20]))
  expect((await tree.state()).detail).not.toContain('controls')
})

it('are known as far as one list goes, which is said', async () => {
  await begin('bulk.*')
  await tree.until(async () => expect((await tree.state()).detail).toContain('a list of its controls is too long'))
  expect((await known('a')) + (await known('b'))).toBeLessThan(40)
})
