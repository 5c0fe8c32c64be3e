/** Which servers below are recorded. */
import { expect, it } from 'vitest'
import type { RemoteSensor } from '../../../../server/kit/producers.ts'
import { patternsOfBelow } from '../../../../server/wings/history/wanted.ts'

it('the server itself is no server below, whatever the others are called', () => {
  const remote = (names: readonly string[], tenant = 'default') => {
    const producers = names.map((name) => ({ id: '', name }))
    return { polled: 'remote', owner: { tenant }, producers: () => producers } as unknown as RemoteSensor
  }
  const sensors = [remote(['rack1', 'rack1/a', 'rack10', 'x']), remote(['north'], 'north')]
  expect(patternsOfBelow('default', { sensors }, 'main')).toEqual(['rack1*', 'x*'])
  expect(patternsOfBelow('default', { sensors }, 'rack1-main')).toEqual(['*rack1', 'rack1/*', 'rack10*', 'x*'])
  expect(patternsOfBelow('north', { sensors }, 'main')).toEqual(['north*'])
  expect(patternsOfBelow('south', { sensors }, 'main')).toEqual([])
})
