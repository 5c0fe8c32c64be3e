// What two views share is a part, or a model.
import '../app.ts'
import './other.ts'

export const one = 1
