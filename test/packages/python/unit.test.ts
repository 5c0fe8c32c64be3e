/** The Python library without a server: its bytes against the vectors, and consumers of a producer in memory. */
import { expect, it } from 'vitest'
import { missing, unittest } from './python.ts'

// Skipped only where Python is missing; the message of python.ts says how to install it.
it.skipIf(missing !== undefined)('passes its tests in Python', async () => {
  const { code, out } = await unittest('unit')
  expect(out).toMatch(/^Ran \d{2,} tests in .*\n\nOK\b/m)
  expect(code, out).toBe(0)
})
