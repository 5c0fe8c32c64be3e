import { pbkdf2, pbkdf2Sync } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { nextTurn } from './immediates.ts'
import { Quiet } from './quiet.ts'

let quiet: Quiet
beforeEach(() => {
  quiet = new Quiet()
})
afterEach(() => quiet.end())

test('it is reached when a chain of immediates has ended', async () => {
  let left = 100
  const step = (): void => {
    if (--left > 0) setImmediate(step)
  }
  step()
  await quiet.reached()
  expect(left).toBe(0)
})

test('it is reached when a key was derived, by either interface', async () => {
  const done: string[] = []
  pbkdf2('password', 'salt', 50_000, 32, 'sha256', () => done.push('node'))
  const { subtle } = globalThis.crypto
  const derive = async (): Promise<void> => {
    const key = await subtle.importKey('raw', new Uint8Array(8), 'PBKDF2', false, ['deriveBits'])
    const salted = { name: 'PBKDF2', hash: 'SHA-256', salt: new Uint8Array(16), iterations: 50_000 }
    await subtle.deriveBits(salted, key, 256)
    await subtle.digest('SHA-256', new Uint8Array(8))
    done.push('web')
  }
  void derive()
  await quiet.reached()
  expect(done.sort()).toEqual(['node', 'web'])
})

test('a key that was derived at once does not hold it up', async () => {
  pbkdf2Sync('password', 'salt', 1_000, 32, 'sha256')
  await quiet.reached()
})

test('it is reached when files were read', async () => {
  let length = 0
  void readFile(import.meta.filename).then((bytes) => {
    length = bytes.length
  })
  await quiet.reached()
  expect(length).toBeGreaterThan(0)
})

test('a loop that only time can end does not hold it up', async () => {
  let isPausing = true
  const look = (): void => {
    if (isPausing) setImmediate(look)
  }
  look()
  await quiet.reached()
  isPausing = false
  await nextTurn()
})
