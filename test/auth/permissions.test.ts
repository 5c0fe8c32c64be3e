import { expect, test } from 'vitest'
import { type Identity, mayRead } from '../../auth/permissions.ts'

const someone = (tenant: string, role: string): Identity => ({ userId: 1, tenant, name: 'alice', role })

test('everybody reads what is the producer’s own', () => {
  expect(mayRead(someone('acme', 'reader'), 'producer')).toBe(true)
})

test('a tenant reads its own and nobody else’s', () => {
  expect(mayRead(someone('acme', 'reader'), { tenant: 'acme' })).toBe(true)
  expect(mayRead(someone('acme', 'reader'), { tenant: 'default' })).toBe(false)
  expect(mayRead(someone('acme', 'Admin'), { tenant: 'default' })).toBe(false)
})

test('an admin reads everything', () => {
  expect(mayRead(someone('default', 'admin'), { tenant: 'acme' })).toBe(true)
})
