/** The producers that an upstream consumes, as they are known here. */
import { afterEach, expect, it } from 'vitest'
import { Tree } from '../../../support/tree.ts'

let tree: Tree
afterEach(() => tree.stop())

/** The names of all producers that the upper server may be asked for. */
function names(): string[] {
  const { sensors } = tree.upper.server.parts.hub
  return sensors.flatMap((one) => (one.polled === 'remote' ? [...one.producers()] : [])).map(({ name }) => name)
}

it('have changed when one has the ids and the name that two had together', async () => {
  tree = await Tree.start()
  await tree.connected()
  const { server } = tree.lower
  let changes = 1
  let below = [
    { id: 'x', name: 'a' },
    { id: 'y', name: 'b' },
  ]
  Object.defineProperties(server.parts.producer.self, {
    below: { value: () => below },
    changes: { get: () => changes },
  })
  server.sessions.sweep()
  await tree.until(() => expect(names()).toEqual(['east', 'east/a', 'east/b']))
  below = [{ id: 'x,b,y', name: 'a' }]
  changes++
  server.sessions.sweep()
  await tree.until(() => expect(names()).toEqual(['east', 'east/a']))
})
