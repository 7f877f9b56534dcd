// SPDX-License-Identifier: Apache-2.0
module example.org/ferry

go 1.21
