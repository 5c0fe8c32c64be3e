import { mkdtempSync, rmSync, statSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { DiskReserve } from '../../../storage/sqlite/disk-space.ts'

let directory = ''
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'reserve-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const file = (): ReturnType<typeof statSync> => statSync(join(directory, 'reserve'), { throwIfNoEntry: false })

test('the reserve takes up 16 MiB of real room', () => {
  expect(new DiskReserve(directory).make()).toBe(true)
  expect(file()?.size).toBe(16 * 1024 * 1024)
  expect(Number(file()?.blocks) * 512).toBeGreaterThanOrEqual(16 * 1024 * 1024)
})

test('it is released once and restored', () => {
  const reserve = new DiskReserve(directory)
  reserve.make()
  expect(reserve.release()).toBe(true)
  expect(file()).toBeUndefined()
  expect(reserve.release()).toBe(false)
  expect(reserve.make()).toBe(true)
  expect(file()?.size).toBe(16 * 1024 * 1024)
})

test('a reserve that is there is taken over as it is', () => {
  new DiskReserve(directory).make()
  const before = file()?.mtimeMs
  const reserve = new DiskReserve(directory)
  expect(reserve.make()).toBe(true)
  expect(file()?.mtimeMs).toBe(before)
  expect(reserve.release()).toBe(true)
})

test('one that was cut short is made anew', () => {
  new DiskReserve(directory).make()
  truncateSync(join(directory, 'reserve'), 100)
  expect(new DiskReserve(directory).make()).toBe(true)
  expect(file()?.size).toBe(16 * 1024 * 1024)
})
