import { expect, test } from 'vitest'
import { type Identity, maySee } from '../../auth/permissions.ts'

const someone = (tenant: string, role: string): Identity => ({ userId: 1, tenant, name: 'alice', role })

test('everybody reads what is the producer’s own', () => {
  expect(maySee(someone('acme', 'reader'), 'producer')).toBe(true)
})

test('a tenant reads its own and nobody else’s', () => {
  expect(maySee(someone('acme', 'reader'), { tenant: 'acme' })).toBe(true)
  expect(maySee(someone('acme', 'reader'), { tenant: 'default' })).toBe(false)
  expect(maySee(someone('acme', 'Admin'), { tenant: 'default' })).toBe(false)
})

test('an admin reads everything', () => {
  expect(maySee(someone('default', 'admin'), { tenant: 'acme' })).toBe(true)
})
