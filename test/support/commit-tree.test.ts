/** When the dependencies of this tree do for that of another commit: to install those takes minutes where some have to be compiled. */
import { expect, test } from 'vitest'
import { hasAllOf, type Lock } from './commit-tree.ts'

const locked = (packages: Lock['packages']): Lock => ({ packages: { '': { version: '0.1.0' }, ...packages } })
const earlier = locked({
  'node_modules/ws': { version: '8.23.0', integrity: 'sha512-a' },
  'node_modules/zod': { version: '4.6.7', integrity: 'sha512-b' },
})

test('they do if they are the same, or more', () => {
  expect(hasAllOf(earlier, earlier)).toBe(true)
  const more = locked({ ...earlier.packages, 'node_modules/yaml': { version: '2.9.1', integrity: 'sha512-c' } })
  expect(hasAllOf(more, earlier)).toBe(true)
})

test('they do although the versions of the two trees themselves differ', () => {
  const released = locked({ ...earlier.packages, '': { version: '1.0.0' } })
  expect(hasAllOf(released, earlier)).toBe(true)
})

test.each<[string, Lock['packages']]>([
  ['is missing', { 'node_modules/ws': { version: '8.23.0', integrity: 'sha512-a' } }],
  ['has another version', { ...earlier.packages, 'node_modules/zod': { version: '4.7.0', integrity: 'sha512-b' } }],
  ['has other bytes', { ...earlier.packages, 'node_modules/zod': { version: '4.6.7', integrity: 'sha512-d' } }],
])('they do not if one %s', (_how, packages) => {
  expect(hasAllOf(locked(packages), earlier)).toBe(false)
})
