/** The lines of an exposition: each family finds its own again, whatever comes between them and however long they are. */
import { expect, it } from 'vitest'
import { Exposition } from '../../../protocol/prometheus/exposition.ts'
import { seeds } from '../../support/long.ts'
import { Random } from '../../support/random.ts'

const gauge = { type: 'gauge', help: '', unit: '' } as const
/** About that of a block of lines. */
const LONG = 1 << 15

it.each(seeds({ short: 10, long: 200 }))('are those of each family, in their order: seed %i', (seed) => {
  const random = new Random(seed)
  const exposition = new Exposition('prometheus')
  const names = Array.from({ length: 1 + random.below(6) }, (_, index) => `m${index}`)
  const expected = new Map<string, string>()
  for (let index = 0, lines = random.below(400); index < lines; index++) {
    const name = random.pick(names)
    const samples = exposition.samples(name, gauge, name)
    for (let part = 0, parts = 1 + random.below(3); part < parts; part++) {
      const length = random.pick([1, 20, 200, LONG - 20, LONG, 3 * LONG])
      const text = `${index}.${part}.`.padEnd(length, random.pick(['x', 'ä', '€']))
      samples.number([['a', text]], index)
      expected.set(name, `${expected.get(name) ?? `# TYPE ${name} gauge\n`}${name}{a="${text}"} ${index}\n`)
    }
    // What was read before the rest has come is the same afterwards.
    if (random.below(200) === 0) expect([...exposition.text()].join('')).toBe(inOrder(expected))
  }
  expect([...exposition.text()].join('')).toBe(inOrder(expected))
})

it('are found again under another name and with a label that names their metric', () => {
  const exposition = new Exposition('prometheus')
  for (let index = 0; index < 2_000; index++) {
    exposition.samples('a_b', gauge, `a.b`).number([['host', `${index}`]], index)
    exposition.samples('a_b', gauge, `a_b`).number([['host', `${index}`]], index)
  }
  const numbers = Array.from({ length: 2_000 }, (_, index) => index)
  expect([...exposition.text()].join('').split('\n')).toEqual([
    '# TYPE a_b gauge',
    ...numbers.map((index) => `a_b{host="${index}"} ${index}`),
    ...numbers.map((index) => `a_b{cinnabar_name="a_b",host="${index}"} ${index}`),
    '',
  ])
})

function inOrder(texts: ReadonlyMap<string, string>): string {
  return [...texts]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([, text]) => text)
    .join('')
}
