/** The Python library's types, by mypy's strict rules, for the oldest Python that it is for. */
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { expect, it } from 'vitest'
import { runToEnd } from '../../support/run-to-end.ts'
import { PACKAGE } from './python.ts'

const folders = (process.env['PATH'] ?? '').split(delimiter)
const isMissing = !folders.some((folder) => existsSync(join(folder, 'mypy')))
if (isMissing) console.warn('skipped: mypy is missing; install it with `apt-get install --no-install-recommends mypy`')

// Skipped only where mypy is missing; the message above says how to install it.
it.skipIf(isMissing)('are complete and right', async () => {
  const { code, out } = await runToEnd('mypy', ['--cache-dir', '/dev/null'], { cwd: PACKAGE, env: process.env })
  expect(out).toMatch(/^Success: no issues found in \d+ source files$/m)
  expect(code, out).toBe(0)
})
